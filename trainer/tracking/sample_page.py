"""Sampled episodes as one HTML page that needs nothing besides itself.

Instructions, actions and responses may hold whatever a web page made the model say: all of it is escaped, and the page's own
policy lets nothing run and nothing load.
"""

import base64
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from trainer.tracking import ShownEpisode, ShownStep

_MOST_SCREENSHOT_BYTES = 8 * 2**20
_MOST_CHARACTERS = 2000
_VERDICTS = ("success", "failure")


def sample_page(run: str, version: int, episodes: Sequence[ShownEpisode]) -> str:
    """The page; screenshots beyond 8 MiB in all, and texts beyond 2000 characters, are left out, and it says so."""
    budget = _ScreenshotBudget(_MOST_SCREENSHOT_BYTES)
    cards = [
        {"episode": episode, "kind": episode.verdict if episode.verdict in _VERDICTS else "other", "about": _about(episode),
         "steps": [(step, *_screenshot(step, budget)) for step in episode.steps]}
        for episode in episodes
    ]  # fmt: skip
    num_successes = sum(episode.verdict == "success" for episode in episodes)
    return _PAGES.get_template("sample_page.html").render(
        run=run, version=version, cards=cards, summary=f"{len(episodes)} sampled episodes, {num_successes} of them successful"
    )


def write_page(folder: Path, version: int, page: str, *, keep: int) -> Path:
    """Writes `v000012.html` whole or not at all, and deletes all but the `keep` latest. Raises `OSError`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"v{version:06d}.html"
    partial = path.with_suffix(".partial")
    partial.write_text(page, encoding="utf-8")
    partial.replace(path)
    for old in sorted(folder.glob("v[0-9]*.html"))[:-keep]:
        old.unlink(missing_ok=True)
    return path


class _ScreenshotBudget:
    def __init__(self, num_bytes: int) -> None:
        self._left = num_bytes

    def takes(self, screenshot: bytes) -> bool:
        if len(screenshot) > self._left:
            return False
        self._left -= len(screenshot)
        return True


def _screenshot(step: ShownStep, budget: _ScreenshotBudget) -> tuple[str, str]:
    """The screenshot's address, or why there is none."""
    if step.screenshot and budget.takes(step.screenshot):
        return f"data:image/jpeg;base64,{base64.b64encode(step.screenshot).decode()}", ""
    return "", "left out: the page is full" if step.screenshot else "no longer kept"


def _about(episode: ShownEpisode) -> str:
    parts = [f"ended: {episode.outcome.replace('_', ' ')}", f"{len(episode.steps)} steps", f"difficulty {episode.difficulty}"]
    if episode.versions:
        first, last = min(episode.versions), max(episode.versions)
        parts.append(f"played by version {first}" if first == last else f"played by versions {first} to {last}")
    return " · ".join([*parts, _shortened(episode.website)])


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]} … ({len(text)} characters)"


_PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
_PAGES.filters["shortened"] = _shortened
