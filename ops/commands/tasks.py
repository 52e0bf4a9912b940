"""Writes a task file of one of the suites, prepares one from a published benchmark, and checks them."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ops.commands.arguments import seed, seed_range
from ops.commands.execution import interruptible
from ops.commands.listing import add_command
from ops.commands.task_file_actions import CHECK, PREPARE, add_check, add_prepare, check_file, prepare_file

EXAMPLE = """\
millrace tasks shop --out shop.jsonl --difficulty easy
millrace tasks prepare webgym train.jsonl --out webgym.jsonl
millrace tasks check webgym.jsonl"""
_SHOP_EXAMPLE = "millrace tasks shop --out shop.jsonl --difficulty easy"
_MINIWOB_EXAMPLE = """\
millrace tasks miniwob --pages click-test,enter-text --seeds 0:100 --out train.jsonl
millrace tasks miniwob --seeds 1000:1005 --out held_out.jsonl"""
_GRID_EXAMPLES = {
    "frozen-lake": "millrace tasks frozen-lake --sizes 4,6 --seeds 0:100 --parameters 'slip=2/3&text=on' --out lakes.jsonl",
    "sokoban": "millrace tasks sokoban --seeds 0:100 --parameters 'boxes=2&box_reward=0.1' --out rooms.jsonl",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    suites = parser.add_subparsers(required=True, dest="suite", metavar="ACTION")
    add_prepare(suites)
    add_check(suites)
    miniwob = add_command(suites, "miniwob", "write tasks over the MiniWoB++ pages", example=_MINIWOB_EXAMPLE)
    miniwob.add_argument("--pages", metavar="NAMES", help="pages, with commas between them (default: all)")
    miniwob.add_argument(
        "--seeds", type=seed_range, default=range(10), metavar="FROM:TO", help="seeds of every page (default: 0:10)"
    )
    miniwob.add_argument(
        "--first-id", type=seed, default=0, metavar="N", help="number of the first task (default: %(default)s)"
    )
    shop = add_command(suites, "shop", "write tasks over the demo shop, with programmatic checks", example=_SHOP_EXAMPLE)
    shop.add_argument("--seed", type=seed, default=0, metavar="N", help="which tasks are drawn (default: %(default)s)")
    shop.add_argument("--difficulty", choices=("easy", "medium", "hard"), help="only tasks of this difficulty (default: all)")
    grids = [
        _add_grid(suites, "frozen-lake", "write tasks over frozen lakes", default_size=4),
        _add_grid(suites, "sokoban", "write tasks over Sokoban rooms", default_size=6),
    ]
    for suite in (miniwob, shop, *grids):
        suite.add_argument("--out", type=Path, required=True, metavar="FILE", help="task file to write")


def _add_grid(
    suites: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, summary: str, *, default_size: int
) -> argparse.ArgumentParser:
    grid = add_command(suites, name, summary, example=_GRID_EXAMPLES[name])
    grid.add_argument(
        "--sizes",
        type=_sizes,
        default=(default_size,),
        metavar="SIZES",
        help=f"cells along a side, with commas between them (default: {default_size})",
    )
    grid.add_argument(
        "--seeds", type=seed_range, default=range(100), metavar="FROM:TO", help="seeds of every size (default: 0:100)"
    )
    grid.add_argument("--parameters", default="", metavar="QUERY", help="of every website, as docs/grid_worlds.md lists them")
    grid.add_argument("--first-id", type=seed, default=0, metavar="N", help="number of the first task (default: %(default)s)")
    return grid


def _sizes(text: str) -> tuple[int, ...]:
    if not all(size.isdecimal() for size in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} names no sizes: write whole numbers with commas between them, as in 4,6")
    return tuple(int(size) for size in text.split(","))


@interruptible
async def run(options: argparse.Namespace) -> int:
    if options.suite in (PREPARE, CHECK):
        return await (prepare_file(options) if options.suite == PREPARE else check_file(options))
    out = options.out.resolve()
    lines = await _miniwob(options, out) if options.suite == "miniwob" else _without_a_browser(options)
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
    from ops.console.output_folder import make_room_for
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
    make_room_for(out)
    async with PlaywrightBrowser(BrowserConfig(), EnvConfig()) as browser:
        return await miniwob_tasks(browser, suite, names, options.seeds, first_id=options.first_id)


def _without_a_browser(options: argparse.Namespace) -> Sequence[Mapping[str, Any]]:
    return _shop(options) if options.suite == "shop" else _grid(options)


def _grid(options: argparse.Namespace) -> Sequence[Mapping[str, Any]]:
    """Raises `ConfigurationError` for levels that there are not."""
    from browser_workers.grids.tasks import grid_tasks
    from browser_workers.suites import UnknownWebsite
    from browser_workers.suites.frozen_lake.suite import FrozenLakeSuite
    from browser_workers.suites.sokoban.suite import SokobanSuite
    from schemas.errors import ConfigurationError

    suite = SokobanSuite() if options.suite == "sokoban" else FrozenLakeSuite()
    try:
        return grid_tasks(suite, options.sizes, options.seeds, options.parameters, first_id=options.first_id)
    except UnknownWebsite as error:
        raise ConfigurationError(str(error)) from error


def _shop(options: argparse.Namespace) -> Sequence[Mapping[str, Any]]:
    from browser_workers.suites.shop.tasks.lines import task_lines
    from browser_workers.suites.shop.tasks.task import Difficulty

    return task_lines(options.seed, Difficulty[options.difficulty.upper()] if options.difficulty else None)
