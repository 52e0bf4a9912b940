"""Creates or changes a run's streams, as its administrator, on servers that are not the run folder's own."""

import argparse
from collections.abc import Iterable
from pathlib import Path

from rich.table import Table

from bus.access import Access
from bus.jetstream import Applied
from ops.commands.arguments import add_joining
from ops.commands.execution import interruptible
from ops.commands.node_arguments import add_cluster, run_of
from ops.console.terminal import Console
from ops.run.folder import RunFolder
from ops.run.joining import address_for
from ops.run.streams import create_streams
from schemas.config import Config

EXAMPLE = """\
millrace streams --file nodes.yaml --cluster cluster
millrace streams --config RECIPE bus_config.url=tls://nats-1.lan:4222"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", type=Path, help="the run of a node file, with the keys of --cluster")
    add_cluster(parser)
    add_joining(parser)


@interruptible
async def run(options: argparse.Namespace) -> int:
    return await apply(*run_of(options))


async def apply(folder: RunFolder, config: Config) -> int:
    """Returns 0 when the server's streams are what the configuration says."""
    applied = await create_streams(address_for(folder, config.bus_config, Access.ADMIN), config.bus_config)
    Console().print(table(applied))
    return 0


def table(applied: Iterable[Applied]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("stream", "queue", "outcome"):
        table.add_column(column)
    for item in applied:
        table.add_row(item.stream, item.queue, item.outcome)
    return table
