"""A run on a real Slurm, where one is installed: as the documentation has it, from the node file to the drained jobs."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
import yaml

from bus.server.ports import held_ports
from ops.processes.role_process import millrace_command
from tests.support.launch.slurm import is_installed, slurm
from tests.support.polling import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.integration,
    pytest.mark.skipif(not is_installed(), reason="no Slurm here: apt-get install slurmctld slurmd slurm-client munge"),
]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def ports() -> Iterator[tuple[int, ...]]:
    with held_ports(2) as ports:
        yield ports


def write(folder: Path) -> None:
    shared = folder / "shared"
    recipe = {
        "defaults": ["simulation", "_self_"],
        "save_path": str(shared / "mine"),
        "data_path": str(shared / "mine"),
        "env_config": {"train_tasks_rollout_size": 8},
        "feeder_config": {"num_iterations": 2},
    }
    nodes = {
        "run": "mine",
        "config": "recipe.yaml",
        "url": f"file:{shared}/server.json",
        "ca_file": f"{shared}/mine/ca.pem",
        "keys": f"{shared}/mine/keys",
        "server": f"{shared}/server",
        "folder": f"{shared}/mine",
        "source": str(ROOT),
        "venv": sys.prefix,
        "slurm": {"time": "01:00:00", "exclusive": True},
        "nodes": {
            "nats": {"roles": {"server": 1, "feeder": 1}},
            "work": {"roles": {"browser": 1, "policy": 1, "judge": 1, "trainer": 1}},
        },
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    (folder / "nodes.yaml").write_text(yaml.safe_dump(nodes))


async def succeeds(folder: Path, *words: str) -> bool:
    return (await anyio.run_process(millrace_command(words), cwd=folder, check=False)).returncode == 0


async def is_written(folder: Path, pattern: str) -> bool:
    return any([True async for _ in anyio.Path(folder).glob(pattern)])


async def test_a_run_begins_ends_and_is_drained(tmp_path: Path, ports: tuple[int, ...]) -> None:
    write(tmp_path)
    client, monitor = map(str, ports)
    cluster = (
        "cluster",
        "--out",
        "cluster",
        "--server",
        "nats",
        "--run",
        "mine",
        "--client-port",
        client,
        "--monitor-port",
        monitor,
    )
    assert await succeeds(tmp_path, *cluster)
    assert await succeeds(tmp_path, "launch", "--with", "slurm", "--place", "--no-setup", "--out", "jobs")
    async with slurm() as it:
        nats, work = [await it.submit(tmp_path / "jobs" / f"{name}.sbatch") for name in ("nats", "work")]
        await until(partial(succeeds, tmp_path, "streams", "--file", "nodes.yaml"))
        await until(partial(is_written, tmp_path / "shared/mine/checkpoints", "v000002*"))
        for job in (work, nats):
            assert await it.state(job) == "RUNNING 0:0"
            await it.says("scancel", "--batch", "--signal=USR1", job)
            await until(partial(it.stands_at, job, "COMPLETED 0:0"))
    said = (tmp_path / "shared" / "mine" / f"millrace-mine-nats-{nats}.out").read_text()
    assert said.splitlines()[-1] == "nats-server-1 stopped"
