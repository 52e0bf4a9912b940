"""Sampled episodes as one HTML page that needs nothing besides itself.

Instructions, actions and responses may hold whatever a web page made the model say: all of it is escaped, and the page's own
policy lets nothing run and nothing load.
"""

import base64
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from trainer.tracking import ShownEpisode, ShownStep

_MOST_PICTURE_BYTES = 8 * 2**20
_MOST_CHARACTERS = 2000
_VERDICTS = ("success", "failure")


def sample_page(run: str, version: int, episodes: Sequence[ShownEpisode]) -> str:
    """The page; pictures beyond 8 MiB in all, and texts beyond 2000 characters, are left out, and it says so."""
    budget = _PictureBudget(_MOST_PICTURE_BYTES)
    cards = "\n".join(_card(episode, budget) for episode in episodes)
    num_successes = sum(episode.verdict == "success" for episode in episodes)
    template = files("trainer.tracking").joinpath("sample_page.html").read_text(encoding="utf-8")
    filled = {
        "{{title}}": f"{escape(run)} · version {version}",
        "{{run}}": escape(run),
        "{{version}}": str(version),
        "{{summary}}": f"{len(episodes)} sampled episodes, {num_successes} of them successful",
    }
    for mark, text in filled.items():
        template = template.replace(mark, text)
    # Last, so that no mark in a page's words is filled in.
    return template.replace("{{cards}}", cards)


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


class _PictureBudget:
    def __init__(self, num_bytes: int) -> None:
        self._left = num_bytes

    def takes(self, picture: bytes) -> bool:
        if len(picture) > self._left:
            return False
        self._left -= len(picture)
        return True


def _card(episode: ShownEpisode, budget: _PictureBudget) -> str:
    kind = episode.verdict if episode.verdict in _VERDICTS else "other"
    reward = "no reward" if episode.reward is None else f"reward {episode.reward:g}"
    versions = _versions(episode.versions)
    about = (
        f"ended: {_text(episode.outcome.replace('_', ' '))}",
        f"{len(episode.steps)} steps",
        f"difficulty {episode.difficulty}",
        *([versions] if versions else ()),
        _text(episode.website),
    )
    reasoning = f'<p class="reasoning">{_text(episode.reasoning)}</p>' if episode.reasoning else ""
    steps = "\n".join(_step(number, step, budget) for number, step in enumerate(episode.steps, 1))
    return f"""<section class="episode {kind}">
<header>
<span class="verdict">{_text(episode.verdict)}</span><span class="reward">{reward}</span>
<h2>{_text(episode.instruction)}</h2>
<p class="about">{" · ".join(about)}</p>
<p class="name">{_text(episode.episode)}</p>
{reasoning}
</header>
<ol class="steps">
{steps}
</ol>
</section>"""


def _step(number: int, step: ShownStep, budget: _PictureBudget) -> str:
    if step.picture and budget.takes(step.picture):
        source = base64.b64encode(step.picture).decode()
        picture = f'<img alt="what the policy saw at step {number}" src="data:image/jpeg;base64,{source}">'
    else:
        reason = "left out: the page is full" if step.picture else "no longer kept"
        picture = f'<div class="absent">picture {reason}</div>'
    unparsed = "" if step.parsed else '<span class="unparsed">not parsed</span>'
    return f"""<li>
<div class="picture">{picture}</div>
<p class="action"><b>{number}</b> {_text(step.action)} {unparsed}</p>
<pre class="response">{_text(step.response) or "<i>empty</i>"}</pre>
</li>"""


def _versions(versions: Sequence[int]) -> str:
    if not versions:
        return ""
    first, last = min(versions), max(versions)
    return f"played by version {first}" if first == last else f"played by versions {first} to {last}"


def _text(text: str) -> str:
    shortened = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]} … ({len(text)} characters)"
    return escape(shortened)
