"""Writes a task file of one of the suites."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ops.commands.arguments import seed, seed_range
from ops.commands.execution import interruptible
from ops.commands.listing import add_command

EXAMPLE = "millrace tasks shop --out shop.jsonl --difficulty easy"
_MINIWOB_EXAMPLE = """\
millrace tasks miniwob --pages click-test,enter-text --seeds 0:100 --out train.jsonl
millrace tasks miniwob --seeds 1000:1005 --out held_out.jsonl"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    suites = parser.add_subparsers(required=True, dest="suite", metavar="SUITE")
    miniwob = add_command(suites, "miniwob", "write tasks over the MiniWoB++ pages", example=_MINIWOB_EXAMPLE)
    miniwob.add_argument("--pages", metavar="NAMES", help="pages, with commas between them (default: all)")
    miniwob.add_argument(
        "--seeds", type=seed_range, default=range(10), metavar="FROM:TO", help="seeds of every page (default: 0:10)"
    )
    miniwob.add_argument(
        "--first-id", type=seed, default=0, metavar="N", help="number of the first task (default: %(default)s)"
    )
    shop = add_command(suites, "shop", "write tasks over the demo shop, with programmatic checks", example=EXAMPLE)
    shop.add_argument("--seed", type=seed, default=0, metavar="N", help="which tasks are drawn (default: %(default)s)")
    shop.add_argument("--difficulty", choices=("easy", "medium", "hard"), help="only tasks of this difficulty (default: all)")
    for suite in (miniwob, shop):
        suite.add_argument("--out", type=Path, required=True, metavar="FILE", help="task file to write")


@interruptible
async def run(options: argparse.Namespace) -> int:
    out = options.out.resolve()
    lines = await _miniwob(options, out) if options.suite == "miniwob" else _shop(options)
    from ops.run.task_files import write_tasks

    write_tasks(out, lines)
    print(f"{len(lines)} tasks in {out}")
    return 0


async def _miniwob(options: argparse.Namespace, out: Path) -> Sequence[Mapping[str, Any]]:
    """Opens every page once in a real browser. Raises `ConfigurationError` for pages that are not there."""
    from browser_workers.chromium.browser import PlaywrightBrowser
    from browser_workers.suites import UnknownWebsite
    from browser_workers.suites.miniwob.suite import MiniWobSuite
    from browser_workers.suites.miniwob.tasks import miniwob_tasks
    from schemas.browser_config import BrowserConfig
    from schemas.env_config import EnvConfig
    from schemas.errors import ConfigurationError

    suite = MiniWobSuite()
    try:
        names = suite.pages if options.pages is None else tuple(name.strip() for name in options.pages.split(","))
        for name in names:
            suite.resolve(name, "")
    except UnknownWebsite as error:
        raise ConfigurationError(str(error)) from error
    # Before the pages are opened, which takes minutes.
    out.parent.mkdir(parents=True, exist_ok=True)
    async with PlaywrightBrowser(BrowserConfig(), EnvConfig()) as browser:
        return await miniwob_tasks(browser, suite, names, options.seeds, first_id=options.first_id)


def _shop(options: argparse.Namespace) -> Sequence[Mapping[str, Any]]:
    from browser_workers.suites.shop.tasks.lines import task_lines
    from browser_workers.suites.shop.tasks.task import Difficulty

    return task_lines(options.seed, Difficulty[options.difficulty.upper()] if options.difficulty else None)
