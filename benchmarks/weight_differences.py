"""A version's way to a policy as what changed, beside whole files over the same bus and a plain copy over loopback.

    python -m benchmarks.weight_differences                    # 0.5 billion parameters in bf16
    python -m benchmarks.weight_differences --billions 2

Weights are normal with deviation 0.02, held in float32 by the trainer and published in bf16 after six steps of AdamW on
random gradients, at a learning rate each. The policy has the version before. Everything is on one machine: the network is
loopback, and server, trainer and policy share the disk.
"""

import argparse
import hashlib
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import anyio
import anyio.to_thread
import numpy as np
import numpy.typing as npt

from agents.weight_cache import WeightCache
from agents.weight_fetching import WeightFetcher
from benchmarks.report import RESULTS, Report
from bus.jetstream import connect, create_topology
from bus.ports import Bus
from bus.server import nats_server
from bus.subjects import Subjects
from bus.topology import shared_queues, streams
from ops.run.logs import quiet_logs
from schemas.bus_config import BusConfig
from schemas.ids import PolicyVersion, RunName
from schemas.messages import Checkpoint
from trainer.versions.announcements import Announcements
from trainer.versions.checkpoints import hash_files
from trainer.versions.weight_publishing import WeightPublisher

_RUN = RunName("differences")
_SUBJECTS = Subjects(_RUN)
_BUS = BusConfig(run=_RUN, weights="bus")
_RATES = (1e-6, 5e-6, 2e-5)
_NUM_BEFORE, _NUM_STEPS = 15, 6
_BETAS = (0.9, 0.999)
_BLOCK = 2**22
_MB = 1e6
Patterns = npt.NDArray[np.uint16]


@dataclass(frozen=True)
class Row:
    learning_rate: float | None
    way: str
    megabytes: float
    changed: float | None
    """Share of the weights whose bits are others."""
    sent_mb: float
    of_the_file: float
    stored_s: float | None
    """Until everything was on the bus, the difference made."""
    fetched_s: float
    """Until the whole file, compared with its hash, was on the policy's disk."""


class WholeFiles(WeightPublisher):
    """The baseline."""

    async def with_differences(self, folder: Path, checkpoint: Checkpoint, announced: Sequence[Checkpoint]) -> Checkpoint:
        del folder, announced
        return checkpoint


def blocks(rate: float) -> tuple[Patterns, Patterns]:
    """Weights in bf16 before and after a version's steps."""
    rng = np.random.default_rng(0)
    weights = (0.02 * rng.standard_normal(_BLOCK)).astype(np.float32)
    first, second, before = np.zeros_like(weights), np.zeros_like(weights), weights
    for step in range(1, _NUM_BEFORE + _NUM_STEPS + 1):
        gradient = rng.standard_normal(_BLOCK).astype(np.float32)
        first = _BETAS[0] * first + (1 - _BETAS[0]) * gradient
        second = _BETAS[1] * second + (1 - _BETAS[1]) * gradient**2
        if step == _NUM_BEFORE + 1:
            before = weights
        weights = weights - rate * (first / (1 - _BETAS[0] ** step)) / np.sqrt(second / (1 - _BETAS[1] ** step))
    return _bf16(before), _bf16(weights)


def _bf16(weights: npt.NDArray[np.float32]) -> Patterns:
    """Rounded to even."""
    bits = weights.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def write_version(folder: Path, block: Patterns, num_weights: int) -> Path:
    """The block again and again, begun elsewhere each time."""
    folder.mkdir(parents=True)
    with (folder / "model.safetensors").open("wb") as file:
        for number in range(num_weights // len(block)):
            file.write(np.roll(block, 7919 * number).tobytes())
    return folder


async def versions(root: Path, rate: float, num_weights: int) -> list[Row]:
    before, after = await anyio.to_thread.run_sync(blocks, rate)
    folders = [
        await anyio.to_thread.run_sync(write_version, root / "versions" / name, block, num_weights)
        for name, block in (("v1", before), ("v2", after))
    ]
    checkpoints = [await _checkpoint(folder, number) for number, folder in enumerate(folders, start=1)]
    rows = []
    for way, publisher in (("whole files", WholeFiles), ("differences", WeightPublisher)):
        async with _bus(root / way / "server") as bus:
            announcements = Announcements(bus, _SUBJECTS, publisher(bus, _SUBJECTS, _BUS))
            fetcher = WeightFetcher(bus, _SUBJECTS, WeightCache(root / way / "policy", 2), timeout_s=60.0)
            await fetcher.fetch(await announcements.announce(checkpoints[0]))
            begun_at = time.monotonic()
            announced = await announcements.announce(checkpoints[1])
            stored_at = time.monotonic()
            await fetcher.fetch(announced)
            fetched_s = time.monotonic() - stored_at
            (file,) = announced.policy_files
            sent = sum(each.file.num_bytes for each in announced.differences) or file.num_bytes
            rows.append(
                Row(
                    learning_rate=rate,
                    way=way,
                    megabytes=file.num_bytes / _MB,
                    changed=float((before != after).mean()),
                    sent_mb=sent / _MB,
                    of_the_file=sent / file.num_bytes,
                    stored_s=stored_at - begun_at,
                    fetched_s=fetched_s,
                )
            )
        await anyio.to_thread.run_sync(shutil.rmtree, root / way)
    if rate == _RATES[0]:
        rows.insert(0, await anyio.to_thread.run_sync(plain_copy, folders[1] / "model.safetensors", root / "copy"))
    await anyio.to_thread.run_sync(shutil.rmtree, root / "versions")
    return rows


def plain_copy(file: Path, to: Path) -> Row:
    """Through a socket into another file, which is then compared with its hash."""
    with socket.create_server(("127.0.0.1", 0)) as server, file.open("rb") as source, to.open("wb") as target:
        sender = threading.Thread(target=_send, args=(server, source))
        sender.start()
        begun_at = time.monotonic()
        with socket.create_connection(server.getsockname()) as connection:
            while data := connection.recv(2**20):
                target.write(data)
        target.flush()
        with to.open("rb") as written:
            hashlib.file_digest(written, "sha256")
        copied_s = time.monotonic() - begun_at
        sender.join()
    megabytes = file.stat().st_size / _MB
    to.unlink()
    return Row(None, "plain copy", megabytes, None, megabytes, 1.0, None, copied_s)


def _send(server: socket.socket, source: BinaryIO) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendfile(source)


async def _checkpoint(folder: Path, version: int) -> Checkpoint:
    files = await anyio.to_thread.run_sync(hash_files, folder)
    return Checkpoint(
        run=_RUN, version=PolicyVersion(version), uri=folder.as_uri(), files=files, parent=None, trainer_step=0, judged_seq=0
    )


@asynccontextmanager
async def _bus(folder: Path) -> AsyncIterator[Bus]:
    async with nats_server(folder, [_BUS]) as address, connect(address, _SUBJECTS, _BUS, name="differences") as bus:
        await create_topology(bus, streams(_SUBJECTS, _BUS), shared_queues(_SUBJECTS, _BUS, _BUS.rubrics))
        yield bus


async def main(root: Path, billions: float) -> Report:
    num_weights = int(billions * 1e9)
    rows = [row for rate in _RATES for row in await versions(root, rate, num_weights)]
    return Report(
        name="weight_differences",
        title=f"Versions of {billions:g} billion parameters in bf16, by what changed",
        rows=rows,
        notes=(
            "target: at most 0.05 of the file at a learning rate of 1e-6",
            "plain copy: one TCP connection over loopback into a file, hashed; nothing is kept for whoever comes late",
            "one machine: loopback, and one disk for trainer, server and policy",
        ),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--billions", type=float, default=0.5, help="parameters (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    with quiet_logs(), tempfile.TemporaryDirectory(prefix="millrace-differences-") as scratch:
        report = anyio.run(main, Path(scratch), options.billions, backend_options={"use_uvloop": True})
    report.publish(options.out)
