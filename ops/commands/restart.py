"""Drains workers one at a time, each started anew before the next."""

import argparse

from ops.commands.execution import interruptible
from ops.commands.node_arguments import add_selection, add_timeout, run_of, selection_of

EXAMPLE = """\
millrace restart --all --run-dir runs/mine
millrace restart --role policy --file nodes.yaml --cluster cluster"""
_RESTART_S = 600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_timeout(parser, _RESTART_S, "how long one worker may take to leave and come back")


@interruptible
async def run(options: argparse.Namespace) -> int:
    from ops.processes.leaving import restart

    chosen = selection_of(options)
    folder, config = run_of(options)
    return await restart(folder, config, chosen, timeout_s=options.timeout)
