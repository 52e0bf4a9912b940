"""From a version's announcement until a policy serves it: from the trainer's folder, and over the bus without it.

    python -m benchmarks.weight_refresh

The tiny model is loaded by a real vLLM; the large file is random bytes, found and verified but not loaded. A fetched version
was stored on the bus before it was announced, which is told apart. The baseline is the shared folder. Everything is on one
machine, so the network is loopback and server, trainer and policy share the disk.
"""

import argparse
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from agents.vllm_arguments import VllmSettings
from agents.vllm_engine import VllmEngine
from benchmarks.report import RESULTS, Report
from ops.gpu_check.refreshing import Load, refreshes
from ops.quickstart.tiny_model import build_tiny_model, sentence_tokenizer
from ops.run.logs import quiet_logs
from schemas.ids import PolicyVersion
from schemas.policy_config import PolicyConfig

_POLICY = PolicyConfig(max_new_tokens=8, max_num_seqs=2, max_model_len=1024, top_k=0, top_p=1.0)
_MB = 1_000_000


@dataclass(frozen=True)
class Row:
    weights: str
    over: str
    """path or bus."""
    megabytes: float
    stored_s: float | None
    """Until everything was on the bus, before the announcement."""
    stored_mb_per_s: float | None
    announced_to_served_s: float
    fetched_mb_per_s: float | None


async def measured(root: Path, name: str, folders: tuple[Path, Path], load: Load) -> list[Row]:
    return [
        Row(
            weights=name,
            over=way.over,
            megabytes=way.megabytes,
            stored_s=way.stored_s,
            stored_mb_per_s=way.megabytes / way.stored_s if way.stored_s else None,
            announced_to_served_s=way.served_s,
            fetched_mb_per_s=way.megabytes / way.served_s if way.stored_s else None,
        )
        for way in await refreshes(root, folders, load)
    ]


async def not_loaded(folder: Path, version: PolicyVersion) -> None:
    del folder, version


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
    settings = VllmSettings(cutoff_len=1024, folder=base, version=PolicyVersion(0), policy=_POLICY, max_screenshots=1, seed=1)
    async with VllmEngine(settings) as engine:
        rows = await measured(root / "a", "tiny model, vLLM on CPU", (tiny[0], tiny[1]), engine.load)
    large = await anyio.to_thread.run_sync(_large, root, megabytes)
    rows += await measured(root / "b", f"{megabytes} MB of random bytes, not loaded", large, not_loaded)
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
