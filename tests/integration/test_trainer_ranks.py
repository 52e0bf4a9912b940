"""The trainer's role on two ranks, as torchrun starts it, with a real nats-server, a critic and a reference."""

import math
import sys
from pathlib import Path

import anyio
import pytest

from benchmarks.trainer_drill import opened
from ops.role_process import millrace_environment
from schemas.messages import Checkpoint, Heartbeat
from tests import tiny_models
from tests.deadlines import HANGS_S
from tests.trainer_world import SUBJECTS, judge
from trainer.versions.checkpoints import folder_of, verify

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


async def test_two_ranks_make_a_version_and_one_of_them_speaks_to_the_bus(tmp_path: Path) -> None:
    base = tiny_models.build(tmp_path / "base", seed=1)
    async with opened(tmp_path / "run", base, objective="ppo", num_versions=1) as drill:
        for index, trajectory in enumerate(drill.trajectories):
            await judge(drill.bus, trajectory, float(index % 2))
        launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
        role = ("-m", "ops.cli", "trainer", "--run-dir", str(drill.folder.path), "--name", "trainer-1")
        with anyio.fail_after(HANGS_S):
            ended = await anyio.run_process(
                [*launcher, *role, "objective_config.kl_loss_coef=0.01"], env=millrace_environment(), check=False
            )
        assert ended.returncode == 0, ended.stderr.decode()[-3000:]
        records = await drill.bus.history(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))
        beats = await drill.bus.history(SUBJECTS.heartbeats, SUBJECTS.everything("heartbeat"))
    first, last = (record.message for record in records)
    assert isinstance(first, Checkpoint)
    assert isinstance(last, Checkpoint)
    verify(folder_of(last.uri), last.files)
    assert {"trainer/critic.safetensors", "trainer/optimizer.safetensors"} <= {file.path for file in last.files}
    assert math.isfinite(last.metrics["loss"])
    assert last.num_trajectories == 6
    workers = [beat.message.worker for beat in beats if isinstance(beat.message, Heartbeat)]
    assert workers == ["trainer-1"]
