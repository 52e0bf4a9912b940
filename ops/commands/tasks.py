"""The commands about tasks that the project brings along: tasks writes their files."""

import argparse
from pathlib import Path

from ops.commands.arguments import seed, seed_range
from ops.commands.execution import interruptible
from ops.commands.listing import Commands, add_command

_MINIWOB_EXAMPLE = """\
millrace tasks miniwob --pages click-test,enter-text --seeds 0:100 --out train.jsonl
millrace tasks miniwob --seeds 1000:1005 --out held_out.jsonl"""


def add_commands(commands: Commands) -> None:
    tasks = commands.add("tasks", "write a task file of one of the suites", _miniwob_tasks, example=_MINIWOB_EXAMPLE)
    suites = tasks.add_subparsers(required=True, dest="suite", metavar="SUITE")
    miniwob = add_command(
        suites,
        "miniwob",
        "write tasks over the MiniWoB++ pages",
        _miniwob_tasks,
        example=_MINIWOB_EXAMPLE,
    )
    add = miniwob.add_argument
    add("--pages", metavar="NAMES", help="pages, with commas between them (default: all)")
    add("--seeds", type=seed_range, default=range(10), metavar="FROM:TO", help="seeds of every page (default: 0:10)")
    add("--first-id", type=seed, default=0, metavar="N", help="number of the first task (default: %(default)s)")
    add("--out", type=Path, required=True, metavar="FILE", help="task file to write")


@interruptible
async def _miniwob_tasks(options: argparse.Namespace) -> int:
    from ops.miniwob_task_file import main

    pages = None if options.pages is None else tuple(name.strip() for name in options.pages.split(","))
    return await main(pages, options.seeds, first_id=options.first_id, out=options.out.resolve())
