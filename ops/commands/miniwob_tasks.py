"""`millrace tasks miniwob`: opens every page once in a real browser, and writes down what it asks for."""

from collections.abc import Sequence
from pathlib import Path

from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.suites.miniwob.suite import MiniWobSuite
from browser_workers.suites.miniwob.tasks import miniwob_tasks
from browser_workers.suites.suite import UnknownWebsite
from ops.run.task_files import write_tasks
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig
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
    # Before the pages are opened, which takes minutes.
    out.parent.mkdir(parents=True, exist_ok=True)
    async with PlaywrightBrowser(BrowserConfig(), EnvConfig()) as browser:
        lines = await miniwob_tasks(browser, suite, names, seeds, first_id=first_id)
    write_tasks(out, lines)
    print(f"{len(lines)} tasks in {out}")
    return 0
