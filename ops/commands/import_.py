"""Writes all episodes of an archive or run into another run."""

import argparse
from pathlib import Path

from ops.commands.arguments import add_joining
from ops.commands.execution import interruptible, joined_run
from schemas.extras import require_extra

EXAMPLE = "millrace import runs/mine/archive --run-dir runs/second"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, metavar="SOURCE", help="folder of an archive or a run")
    add_joining(parser)
    parser.add_argument("--no-judgements", action="store_true", help="leave judgements out, to have the run judge anew")


@interruptible
async def run(options: argparse.Namespace) -> int:
    require_extra("pyarrow", "archive")
    from ops.archive.importing import import_episodes

    folder, config = joined_run(options)
    return await import_episodes(options.source.resolve(), folder, config, judgements=not options.no_judgements)
