"""A training job on two nodes: real ranks on a real nats-server, of which one is killed."""

import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import psutil
import pytest

from ops.launch.job import Interface, Job, run_job
from ops.processes.role_process import millrace_command
from ops.run.joining import join
from schemas.messages import Checkpoint
from tests.deadlines import HANGS_S
from tests.support.agents import tiny_models
from tests.support.drills.trainer_drill import BATCH, Drill, opened
from tests.support.training.trainer_world import SUBJECTS, judge
from trainer.versions.checkpoints import folder_of, verify

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

_JOB = Job(nodes=("a", "b"), num_ranks=(1, 1))
_HERE = Interface(name="lo", address="127.0.0.1")


def ranks(number: int) -> Iterator[psutil.Process]:
    """Processes of this one that are the rank of this number."""
    for process in psutil.Process(os.getpid()).children():
        try:
            if process.environ().get("RANK") == str(number):
                yield process
        except psutil.Error:
            continue


async def versions(drill: Drill) -> list[Checkpoint]:
    records = await drill.bus.history(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))
    return [record.message for record in records if isinstance(record.message, Checkpoint)]


async def test_a_job_whose_rank_is_killed_goes_on_when_its_node_is_back(tmp_path: Path) -> None:
    base = tiny_models.build(tmp_path / "base", seed=1)
    async with opened(tmp_path / "run", base, objective="cloning", num_versions=2) as drill:
        command = millrace_command(("trainer", "--run-dir", str(drill.folder.path), "--name", "trainer-1"))
        codes: dict[str, list[int]] = {"a": [], "b": []}
        first_failed = anyio.Event()

        async def node(name: str) -> None:
            """Begun again where it fails, as its supervisor does."""
            while 0 not in codes[name]:
                async with join(drill.folder, drill.config, role="trainer", name=f"{name}-job") as bus:
                    codes[name].append(await run_job(bus, SUBJECTS, _JOB, name, command, _HERE))
                first_failed.set()

        async def give(trajectories: slice) -> None:
            for index, trajectory in enumerate(drill.trajectories[trajectories]):
                await judge(drill.bus, trajectory, float(index % 2 == 0))

        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                group.start_soon(node, "a")
                group.start_soon(node, "b")
                await give(slice(BATCH))
                while len(await versions(drill)) < 2:  # noqa: ASYNC110
                    await anyio.sleep(0.2)
                (rank,) = ranks(1)
                rank.kill()
                await first_failed.wait()
                await give(slice(BATCH, 2 * BATCH))
        assert codes["b"] == [128 + 9, 0]
        # Rank 0 misses its peer, or its node misses the other: whichever is seen first.
        assert codes["a"] in ([0], [1, 0])
        *_, last = await versions(drill)
    verify(folder_of(last.uri), last.files)
    assert (last.version, last.num_trajectories) == (2, 2 * BATCH)
    assert {f"trainer/optimizer-rank0000{rank}.safetensors" for rank in (0, 1)} <= {file.path for file in last.files}
