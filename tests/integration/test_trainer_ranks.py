"""The trainer's role on two ranks, as torchrun starts it, with a real nats-server, a critic and a reference."""

import math
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from bus.background import background
from bus.ports import Bus
from ops.processes.role_process import millrace_environment
from schemas.messages import Checkpoint, Heartbeat
from tests.deadlines import HANGS_S
from tests.support.agents import tiny_models
from tests.support.drills.trainer_drill import opened
from tests.support.training.trainer_world import SUBJECTS, judge
from trainer.versions.checkpoints import folder_of, verify

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


@asynccontextmanager
async def heard(bus: Bus) -> AsyncIterator[set[str]]:
    """The workers whose heartbeats come in the meantime: none is kept for long."""
    workers: set[str] = set()

    async def listen() -> None:
        async with bus.tail(SUBJECTS.heartbeats, SUBJECTS.everything("heartbeat")) as beats:
            async for beat in beats:
                assert isinstance(beat.message, Heartbeat)
                workers.add(beat.message.worker)

    async with background(listen):
        yield workers


async def test_two_ranks_make_a_version_and_one_of_them_speaks_to_the_bus(tmp_path: Path) -> None:
    base = tiny_models.build(tmp_path / "base", seed=1)
    async with opened(tmp_path / "run", base, objective="ppo", num_versions=1) as drill:
        for index, trajectory in enumerate(drill.trajectories):
            await judge(drill.bus, trajectory, float(index % 2))
        launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
        role = ("-m", "ops.cli", "trainer", "--run-dir", str(drill.folder.path), "--name", "trainer-1")
        with anyio.fail_after(HANGS_S):
            async with heard(drill.bus) as workers:
                ended = await anyio.run_process(
                    [*launcher, *role, "objective_config.kl_loss_coef=0.01"], env=millrace_environment(), check=False
                )
        assert ended.returncode == 0, ended.stderr.decode()[-3000:]
        records = await drill.bus.history(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))
    first, last = (record.message for record in records)
    assert isinstance(first, Checkpoint)
    assert isinstance(last, Checkpoint)
    verify(folder_of(last.uri), last.files)
    states = {f"trainer/{model}-rank0000{rank}.safetensors" for model in ("optimizer", "critic-optimizer") for rank in (0, 1)}
    assert states | {"trainer/critic.safetensors"} <= {file.path for file in last.files}
    assert math.isfinite(last.metrics["loss"])
    assert last.num_trajectories == 6
    assert workers == {"trainer-1"}
