"""Has workers finish what they hold, and leave."""

import argparse

from ops.commands.execution import interruptible
from ops.commands.node_arguments import add_selection, add_timeout, run_of, selection_of

EXAMPLE = """\
millrace drain browser-2 --run-dir runs/mine
millrace drain --role browser --file nodes.yaml --no-wait"""
_DRAIN_S = 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_timeout(parser, _DRAIN_S, "how long to watch; a worker goes on draining after that")
    parser.add_argument("--no-wait", action="store_true", help="tell them, and return")


@interruptible
async def run(options: argparse.Namespace) -> int:
    from ops.processes.leaving import drain

    chosen = selection_of(options)
    folder, config = run_of(options)
    return await drain(folder, config, chosen, wait=not options.no_wait, timeout_s=options.timeout)
