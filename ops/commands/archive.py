"""Copies episodes and screenshots to files before they age out, once or for as long as the run goes on; checks an archive."""

import argparse
from pathlib import Path

from ops.commands import role
from ops.commands.arguments import add_worker
from ops.commands.execution import interruptible, joined_run, worker_name
from schemas.extras import require_extra

EXAMPLE = """\
millrace archive --run-dir runs/mine
millrace archive --run-dir runs/mine --once
millrace archive --verify runs/mine/archive"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_worker(parser)
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--once", action="store_true", help="archive what there is now, then stop")
    end.add_argument("--verify", type=Path, metavar="FOLDER", help="check every hash of an archive instead")


def run(options: argparse.Namespace) -> int:
    if options.verify or options.once:
        return _archive_now(options)
    options.command = "archiver"
    return role.run(options)


@interruptible
async def _archive_now(options: argparse.Namespace) -> int:
    require_extra("pyarrow", "archive")
    from ops.archive.archiving import archive_once, check

    if options.verify:
        return await check(options.verify.resolve())
    folder, config = joined_run(options)
    return await archive_once(folder, config, worker_name(options))
