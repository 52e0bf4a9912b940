"""Runs the roles that a node file gives this node."""

import argparse
import socket

from ops.commands.execution import interruptible
from ops.commands.node_arguments import add_file

EXAMPLE = "millrace node --file nodes.yaml --name cpu-1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    parser.add_argument("--name", default=socket.gethostname(), help="the node's in the file (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="read the files, list the processes, start nothing")


@interruptible
async def run(options: argparse.Namespace) -> int:
    from ops.launch.node import main

    return await main(options.file.resolve(), options.name, check=options.check)
