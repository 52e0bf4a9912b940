"""`millrace streams`: the administrator's step, by hand, for servers that are not the run folder's own."""

from collections.abc import Iterable

from rich.table import Table

from bus.access import Access
from bus.jetstream import Applied
from ops.console.terminal import Console
from ops.run.folder import RunFolder
from ops.run.joining import address_for
from ops.run.streams import create_streams
from schemas.config import Config


async def main(folder: RunFolder, config: Config) -> int:
    """Returns 0 when the server's streams are what the configuration says."""
    applied = await create_streams(address_for(folder, config.bus_config, Access.ADMIN), config.bus_config)
    Console().print(_table(applied))
    return 0


def _table(applied: Iterable[Applied]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("stream", "queue", "outcome"):
        table.add_column(column)
    for item in applied:
        table.add_row(item.stream, item.queue, item.outcome)
    return table
