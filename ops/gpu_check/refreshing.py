"""From a version's announcement until it is served: from the trainer's folder, and over the bus without it.

Server, trainer and policy are on one machine: the network is loopback, and they share the disk.
"""

import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from agents.weight_sources import WeightSources
from agents.weights import AnnouncedWeights
from bus.jetstream import connect, create_topology
from bus.ports import Bus
from bus.server import nats_server
from bus.server.patience import size_of
from bus.subjects import Subjects
from bus.topology import shared_queues, streams
from ops.gpu_check.results import Refresh
from ops.planning.gpus import GIB
from schemas.bus_config import BusConfig
from schemas.errors import ConfigurationError
from schemas.ids import PolicyVersion, RunName
from schemas.messages import Checkpoint
from trainer.versions.announcements import Announcements
from trainer.versions.checkpoints import hash_files
from trainer.versions.weight_publishing import WeightPublisher

_RUN = RunName("refresh")
_SUBJECTS = Subjects(_RUN)
_BUS = BusConfig(run=_RUN, weights="bus")
_LIMIT_S = 900.0
_COPIES = 4
"""Of the model on the disk at once: two versions, the second one's files in the server's store, and as they were fetched."""
_SPARE = 0.5 * GIB
"""For the server, which ends where less than half of it is left."""
_MB = 1e6
Load = Callable[[Path, PolicyVersion], Awaitable[None]]


def require_room(model: Path, root: Path) -> None:
    """Before anything is copied.

    Raises:
        ConfigurationError: the disk of `root` has too little left.
    """
    size, free = size_of(model), shutil.disk_usage(root).free
    if free < (needed := _COPIES * size + _SPARE):
        raise ConfigurationError(
            f"the disk of {root} has {free / GIB:.1f} GiB free and the part serving needs {needed / GIB:.1f}, for {_COPIES} "
            f"copies of the model's {size / GIB:.1f} GiB: make room, name a folder on another disk with --out, or leave "
            "that part out with --only training --only learning"
        )


async def refreshes(root: Path, folders: tuple[Path, Path], load: Load) -> list[Refresh]:
    """Two versions: the first from its folder, the second over the bus, its folder out of the policy's sight.

    Args:
        root: an empty folder for the server and what is fetched.
        load: what a policy does with a version that is there.
    """
    found = []
    async with _bus(root / "server") as bus:
        for number, (over, folder) in enumerate(zip(("path", "bus"), folders, strict=True), start=1):
            version = PolicyVersion(number)
            found.append(await _refresh(bus, root / "cache", over, await _checkpoint(folder, version), load))
    return found


async def _refresh(bus: Bus, cache: Path, over: str, checkpoint: Checkpoint, load: Load) -> Refresh:
    folder, stored_s = Path(checkpoint.uri.removeprefix("file://")), None
    publisher = WeightPublisher(bus, _SUBJECTS, _BUS) if over == "bus" else None
    if publisher is not None:
        begun_at = time.monotonic()
        await publisher.send(folder, checkpoint)
        stored_s = time.monotonic() - begun_at
        # As on another machine, where there is no such folder.
        await anyio.to_thread.run_sync(folder.rename, folder.with_name(f"{folder.name}-elsewhere"))
    served = anyio.Event()

    async def serve(found: Path, version: PolicyVersion) -> None:
        await load(found, version)
        served.set()

    before = PolicyVersion(checkpoint.version - 1)
    weights = AnnouncedWeights(bus, _SUBJECTS, serve, before, WeightSources(bus, _SUBJECTS, _BUS, cache=cache, base=None))
    async with anyio.create_task_group() as group:
        group.start_soon(weights.follow)
        begun_at = time.monotonic()
        await Announcements(bus, _SUBJECTS).announce(checkpoint)
        with anyio.fail_after(_LIMIT_S):
            await served.wait()
        served_s = time.monotonic() - begun_at
        group.cancel_scope.cancel()
    megabytes = sum(file.num_bytes for file in checkpoint.policy_files) / _MB
    return Refresh(over, round(megabytes, 1), stored_s, served_s)


async def _checkpoint(folder: Path, version: PolicyVersion) -> Checkpoint:
    files = await anyio.to_thread.run_sync(hash_files, folder)
    return Checkpoint(run=_RUN, version=version, uri=folder.as_uri(), files=files, parent=None, trainer_step=0, judged_seq=0)


@asynccontextmanager
async def _bus(folder: Path) -> AsyncIterator[Bus]:
    async with nats_server(folder, [_BUS]) as address, connect(address, _SUBJECTS, _BUS, name="refresh") as bus:
        await create_topology(bus, streams(_SUBJECTS, _BUS), shared_queues(_SUBJECTS, _BUS, _BUS.rubrics))
        yield bus
