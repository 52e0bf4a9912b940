"""The commands about tasks that the project brings along: tasks writes their files, site serves their pages to a person."""

import argparse
from pathlib import Path

from ops.commands.arguments import port, seed, seed_range
from ops.commands.execution import interruptible
from ops.commands.listing import Commands, add_command

_MINIWOB_EXAMPLE = """\
millrace tasks miniwob --pages click-test,enter-text --seeds 0:100 --out train.jsonl
millrace tasks miniwob --seeds 1000:1005 --out held_out.jsonl"""
_SHOP_EXAMPLE = "millrace tasks shop --out shop.jsonl --difficulty easy"
_SITE_EXAMPLE = "millrace site shop --port 8000"
_PORT = 8000


def add_commands(commands: Commands) -> None:
    tasks = commands.add("tasks", "write a task file of one of the suites", _shop_tasks, example=_SHOP_EXAMPLE)
    suites = tasks.add_subparsers(required=True, dest="suite", metavar="SUITE")
    miniwob = add_command(suites, "miniwob", "write tasks over the MiniWoB++ pages", _miniwob_tasks, example=_MINIWOB_EXAMPLE)
    miniwob.add_argument("--pages", metavar="NAMES", help="pages, with commas between them (default: all)")
    miniwob.add_argument(
        "--seeds", type=seed_range, default=range(10), metavar="FROM:TO", help="seeds of every page (default: 0:10)"
    )
    miniwob.add_argument(
        "--first-id", type=seed, default=0, metavar="N", help="number of the first task (default: %(default)s)"
    )
    _add_out(miniwob)
    shop = add_command(
        suites, "shop", "write tasks over the demo shop, with programmatic checks", _shop_tasks, example=_SHOP_EXAMPLE
    )
    shop.add_argument("--seed", type=seed, default=0, metavar="N", help="which tasks are drawn (default: %(default)s)")
    shop.add_argument("--difficulty", choices=("easy", "medium", "hard"), help="only tasks of this difficulty (default: all)")
    _add_out(shop)
    site = commands.add("site", "serve a site of the suites on loopback, for one's own browser", _site, example=_SITE_EXAMPLE)
    site.add_argument("site", choices=("shop",), metavar="SITE", help="shop")
    site.add_argument("--port", type=port, default=_PORT, metavar="PORT", help="on 127.0.0.1 (default: %(default)s)")


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="task file to write")


@interruptible
async def _miniwob_tasks(options: argparse.Namespace) -> int:
    from ops.commands.miniwob_tasks import main

    pages = None if options.pages is None else tuple(name.strip() for name in options.pages.split(","))
    return await main(pages, options.seeds, first_id=options.first_id, out=options.out.resolve())


@interruptible
async def _shop_tasks(options: argparse.Namespace) -> int:
    from ops.commands.shop_tasks import main

    return main(options.out, options.seed, options.difficulty)


@interruptible
async def _site(options: argparse.Namespace) -> int:
    from browser_workers.suites.shop.site import ShopSite
    from ops.web.site_server import serve

    return await serve(ShopSite(), options.port)
