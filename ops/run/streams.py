"""The administrator's step of one run: its streams and shared queues are made as `bus.topology` says."""

from bus.address import ServerAddress
from bus.jetstream import Applied, connect, create_topology
from bus.subjects import Subjects
from bus.topology import shared_queues, streams
from schemas.bus_config import BusConfig


async def create_streams(address: ServerAddress, bus: BusConfig) -> tuple[Applied, ...]:
    """Creates what is missing and changes what differs; safe to repeat. `address` is for the administrator's key.

    Raises:
        BusError: no server answers, or it refuses a change.
    """
    subjects = Subjects(bus.run, bus.num_shards)
    async with connect(address, subjects, bus, name="administrator") as connection:
        return await create_topology(connection, streams(subjects, bus), shared_queues(subjects, bus, bus.rubrics))
