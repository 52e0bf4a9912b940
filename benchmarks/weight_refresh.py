"""From a version's announcement until a policy serves it: from the trainer's folder, and over the bus without it.

    python -m benchmarks.weight_refresh

The tiny model is loaded by a real vLLM; the large file is random bytes, found and verified but not loaded. A fetched version
was stored on the bus before it was announced, which is told apart. The baseline is the shared folder. Everything is on one
machine, so the network is loopback and server, trainer and policy share the disk.
"""

import argparse
import secrets
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

from agents.vllm_arguments import VllmSettings
from agents.vllm_engine import VllmEngine
from agents.weight_sources import WeightSources
from agents.weights import AnnouncedWeights
from benchmarks.report import RESULTS, Report
from bus.jetstream import connect, create_topology
from bus.ports import Bus
from bus.server import nats_server
from bus.subjects import Subjects
from bus.topology import shared_queues, streams
from ops.quickstart.tiny_model import build_tiny_model, sentence_tokenizer
from ops.run.logs import quiet_logs
from schemas.bus_config import BusConfig
from schemas.ids import PolicyVersion, RunName
from schemas.messages import Checkpoint
from schemas.policy_config import PolicyConfig
from trainer.versions.announcements import Announcements
from trainer.versions.checkpoints import hash_files
from trainer.versions.weight_publishing import WeightPublisher

_RUN = RunName("refresh")
_SUBJECTS = Subjects(_RUN)
_BUS = BusConfig(run=_RUN, weights="bus")
_POLICY = PolicyConfig(max_new_tokens=8, max_num_seqs=2, max_model_len=1024, top_k=0, top_p=1.0)
_LIMIT_S = 900.0
_MB = 1_000_000


@dataclass(frozen=True)
class Refresh:
    weights: str
    over: str
    """path or bus."""
    megabytes: float
    stored_s: float | None
    """Until everything was on the bus, before the announcement."""
    stored_mb_per_s: float | None
    announced_to_served_s: float
    fetched_mb_per_s: float | None


@dataclass
class Policy:
    """What a policy worker does with announcements."""

    engine: VllmEngine | None
    version: PolicyVersion = PolicyVersion(0)
    served: anyio.Event = field(default_factory=anyio.Event)

    async def load(self, folder: Path, version: PolicyVersion) -> None:
        if self.engine is not None:
            await self.engine.load(folder, version)
        self.version = version
        self.served.set()


async def refreshes(root: Path, name: str, folders: tuple[Path, Path], engine: VllmEngine | None) -> list[Refresh]:
    """Two versions: the first from the folder, the second over the bus, its folder out of the policy's sight."""
    rows = []
    async with _bus(root / "server") as bus:
        policy = Policy(engine)
        for number, (over, folder) in enumerate(zip(("path", "bus"), folders, strict=True), start=1):
            version = PolicyVersion(number)
            rows.append(await _refresh(bus, root / "cache", name, over, await _checkpoint(folder, version), policy))
    return rows


async def _refresh(bus: Bus, cache: Path, name: str, over: str, checkpoint: Checkpoint, policy: Policy) -> Refresh:
    folder, megabytes, stored_s = Path(checkpoint.uri.removeprefix("file://")), _megabytes(checkpoint), None
    publisher = WeightPublisher(bus, _SUBJECTS, _BUS) if over == "bus" else None
    if publisher is not None:
        begun_at = time.monotonic()
        await publisher.send(folder, checkpoint)
        stored_s = time.monotonic() - begun_at
        # As on another machine, where there is no such folder.
        await anyio.to_thread.run_sync(folder.rename, folder.with_name(f"{folder.name}-elsewhere"))
    sources = WeightSources(bus, _SUBJECTS, _BUS, cache=cache, base=None)
    policy.served = anyio.Event()
    weights = AnnouncedWeights(bus, _SUBJECTS, policy.load, policy.version, sources)
    async with anyio.create_task_group() as group:
        group.start_soon(weights.follow)
        begun_at = time.monotonic()
        await Announcements(bus, _SUBJECTS).announce(checkpoint)
        with anyio.fail_after(_LIMIT_S):
            await policy.served.wait()
        served_s = time.monotonic() - begun_at
        group.cancel_scope.cancel()
    return Refresh(
        weights=name,
        over=over,
        megabytes=round(megabytes, 1),
        stored_s=stored_s,
        stored_mb_per_s=megabytes / stored_s if stored_s else None,
        announced_to_served_s=served_s,
        fetched_mb_per_s=megabytes / served_s if stored_s else None,
    )


async def _checkpoint(folder: Path, version: PolicyVersion) -> Checkpoint:
    files = await anyio.to_thread.run_sync(hash_files, folder)
    return Checkpoint(run=_RUN, version=version, uri=folder.as_uri(), files=files, parent=None, trainer_step=0, judged_seq=0)


def _megabytes(checkpoint: Checkpoint) -> float:
    return sum(file.num_bytes for file in checkpoint.policy_files) / _MB


@asynccontextmanager
async def _bus(folder: Path) -> AsyncIterator[Bus]:
    async with nats_server(folder, [_BUS]) as address, connect(address, _SUBJECTS, _BUS, name="refresh") as bus:
        await create_topology(bus, streams(_SUBJECTS, _BUS), shared_queues(_SUBJECTS, _BUS, _BUS.rubrics))
        yield bus


def _tiny(root: Path) -> tuple[Path, Path, Path]:
    texts = ["Click the button.", "Task: click\n"]
    folders = tuple(root / f"tiny-{seed}" for seed in range(3))
    for seed, folder in enumerate(folders):
        build_tiny_model(folder, sentence_tokenizer(texts), seed=seed)
    return folders[0], folders[1], folders[2]


def _large(root: Path, megabytes: int) -> tuple[Path, Path]:
    """Two versions of one file of random bytes."""
    folders = (root / "large-1", root / "large-2")
    for folder in folders:
        folder.mkdir()
        with (folder / "model.safetensors").open("wb") as file:
            for _ in range(megabytes):
                file.write(secrets.token_bytes(_MB))
    return folders


async def main(root: Path, megabytes: int) -> Report:
    base, *tiny = await anyio.to_thread.run_sync(_tiny, root)
    async with AsyncExitStack() as stack:
        settings = VllmSettings(
            cutoff_len=1024, folder=base, version=PolicyVersion(0), policy=_POLICY, max_screenshots=1, seed=1
        )
        engine = await stack.enter_async_context(VllmEngine(settings))
        rows = await refreshes(root / "a", "tiny model, vLLM on CPU", (tiny[0], tiny[1]), engine)
    large = await anyio.to_thread.run_sync(_large, root, megabytes)
    rows += await refreshes(root / "b", f"{megabytes} MB of random bytes, not loaded", large, None)
    return Report(
        name="weight_refresh",
        title="From announcement to served weights",
        rows=rows,
        notes=(
            "path: the trainer's folder, which the policy can read; bus: fetched in chunks, verified, read from its own disk",
            "one machine: loopback, and one disk for trainer, server and policy",
        ),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    with quiet_logs(), tempfile.TemporaryDirectory(prefix="millrace-refresh-") as scratch:
        report = anyio.run(main, Path(scratch), options.megabytes, backend_options={"use_uvloop": True})
    report.publish(options.out)
