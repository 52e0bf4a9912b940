"""`millrace tasks miniwob`: opens every page once in a real browser, and writes down what it asks for."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.suites.miniwob.suite import MiniWobSuite
from browser_workers.suites.miniwob.tasks import miniwob_tasks
from browser_workers.suites.suite import UnknownWebsite
from schemas.config import BrowserConfig, EnvConfig
from schemas.errors import ConfigurationError


async def main(pages: Sequence[str] | None, seeds: Sequence[int], *, first_id: int, out: Path) -> int:
    """Raises `ConfigurationError` for pages that are not there."""
    suite = MiniWobSuite()
    try:
        names = suite.pages if pages is None else pages
        for name in names:
            suite.resolve(name, "")
    except UnknownWebsite as error:
        raise ConfigurationError(str(error)) from error
    async with PlaywrightBrowser(BrowserConfig(), EnvConfig()) as browser:
        lines = await miniwob_tasks(browser, suite, names, seeds, first_id=first_id)
    _write(out, lines)
    print(f"{len(lines)} tasks in {out}")
    return 0


def _write(path: Path, lines: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines), encoding="utf-8")
