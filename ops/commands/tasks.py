"""The commands about tasks that the project brings along: tasks writes their files, site serves their pages to a person."""

import argparse
from pathlib import Path

from ops.commands.arguments import port, seed
from ops.commands.execution import interruptible
from ops.commands.listing import Commands, add_command

_TASKS_EXAMPLE = "millrace tasks shop --out shop.jsonl --difficulty easy"
_SITE_EXAMPLE = "millrace site shop --port 8000"
_PORT = 8000


def add_commands(commands: Commands) -> None:
    tasks = commands.add("tasks", "write a task file of one of the suites", _shop_tasks, example=_TASKS_EXAMPLE)
    suites = tasks.add_subparsers(required=True, dest="suite", metavar="SUITE")
    shop = add_command(suites, "shop", "write tasks over the demo shop, with programmatic checks", _shop_tasks)
    shop.add_argument("--out", type=Path, required=True, metavar="FILE", help="task file to write")
    shop.add_argument("--seed", type=seed, default=0, metavar="N", help="which tasks are drawn (default: %(default)s)")
    shop.add_argument("--difficulty", choices=("easy", "medium", "hard"), help="only tasks of this difficulty (default: all)")
    site = commands.add("site", "serve a site of the suites on loopback, for one's own browser", _site, example=_SITE_EXAMPLE)
    site.add_argument("site", choices=("shop",), metavar="SITE", help="shop")
    site.add_argument("--port", type=port, default=_PORT, metavar="PORT", help="on 127.0.0.1 (default: %(default)s)")


@interruptible
async def _shop_tasks(options: argparse.Namespace) -> int:
    from ops.task_files import write_shop_tasks

    return write_shop_tasks(options.out, options.seed, options.difficulty)


@interruptible
async def _site(options: argparse.Namespace) -> int:
    from browser_workers.suites.shop.site import ShopSite
    from ops.site_server import serve

    return await serve(ShopSite(), options.port)
