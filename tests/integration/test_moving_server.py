"""A server whose machine nobody knows before: its node says where it is, workers find it, and follow it when it has moved."""

import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest
import structlog
import yaml
from anyio.abc import TaskGroup

from bus.jetstream import JetStreamBus, connect
from bus.ports import Expect
from bus.server.cluster_files import ClusterPlan, server_folder, write_cluster
from bus.server.ports import held_ports
from bus.subjects import Subjects
from ops.launch.node import main
from ops.launch.node_file import administered
from ops.processes.role_process import millrace_command
from ops.run.folder import RunFolder
from ops.run.joining import address_for
from schemas.bus_config import BusConfig
from schemas.errors import BusUnavailable
from schemas.ids import PolicyVersion, RunName
from schemas.messages import Checkpoint
from tests.deadlines import HANGS_S
from tests.support.polling import until

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
RUN = RunName("mine")
SUBJECTS = Subjects(RUN)


@pytest.fixture
def ports() -> Iterator[tuple[int, ...]]:
    with held_ports(3) as ports:
        yield ports


async def written(folder: Path, client: int, monitor: int) -> Path:
    """A cluster of one server on these ports, and the node file that places it."""
    plan = ClusterPlan(hosts=("cpu-1",), runs=(BusConfig(run=RUN),), client_port=client, monitor_port=monitor)
    await write_cluster(folder / "cluster", plan)
    content = {
        "run": RUN,
        "url": f"file:{folder}/shared/server.json",
        "ca_file": f"{folder}/cluster/ca.pem",
        "keys": f"{folder}/cluster/keys/{RUN}",
        "folder": f"{folder}/shared",
        "server": str(server_folder(folder / "cluster", "cpu-1")),
        "nodes": {"cpu-1": {"roles": {"server": 1}}},
    }
    (folder / "nodes.yaml").write_text(yaml.safe_dump(content))
    return folder / "nodes.yaml"


class Started:
    """The server's node, as Slurm starts it somewhere."""

    def __init__(self, file: Path, group: TaskGroup) -> None:
        self._scope, self._gone = anyio.CancelScope(), anyio.Event()
        group.start_soon(self._run, file)

    async def _run(self, file: Path) -> None:
        with self._scope:
            await main(file, "cpu-1", check=False)
        self._gone.set()

    async def end(self) -> None:
        self._scope.cancel()
        await self._gone.wait()


async def streams(file: Path) -> bool:
    """Whether the administrator finds the server, and the run's streams are there then."""
    command = millrace_command(("streams", "--file", str(file), "--cluster", str(file.parent / "cluster")))
    return (await anyio.run_process(command, check=False)).returncode == 0


def other_machine(server: Path, port: int) -> None:
    """What it has kept is served from elsewhere: here, from another port."""
    text = re.sub(r'(?<=^listen: "0.0.0.0:)\d+', str(port), (server / "nats.conf").read_text(), flags=re.MULTILINE)
    (server / "nats.conf").write_text(text)


async def append(bus: JetStreamBus, version: int) -> int:
    subject = SUBJECTS.checkpoint(PolicyVersion(version))
    return await bus.append(SUBJECTS.checkpoints, subject, checkpoint(version), expect=Expect(subject, 0))


def checkpoint(version: int) -> Checkpoint:
    return Checkpoint(
        run=RUN, version=PolicyVersion(version), uri="file:///c", files=(), parent=None, trainer_step=0, judged_seq=0
    )


async def test_workers_find_a_server_by_its_file_and_follow_it(
    tmp_path: Path, ports: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, monitor, moved = ports
    file = await written(tmp_path, client, monitor)
    config, folder = administered(file, tmp_path / "cluster", ()), RunFolder(tmp_path / "run")
    monkeypatch.setattr(socket, "gethostname", lambda: "127.0.0.1")
    with pytest.raises(BusUnavailable, match="no server has said"):
        address_for(folder, config.bus_config, "trainer")

    async with anyio.create_task_group() as nodes:
        started = Started(file, nodes)
        await until(partial(streams, file))
        address = address_for(folder, config.bus_config, "trainer")
        assert address.server_name == "cpu-1"
        assert address.url.startswith("tls://127.0.0.1:")
        async with connect(address, SUBJECTS, replace(config.bus_config, request_timeout_s=HANGS_S), name="trainer") as bus:
            assert await append(bus, 0) == 1
            await started.end()
            other_machine(server_folder(tmp_path / "cluster", "cpu-1"), moved)
            certificates, away = tmp_path / "cluster/ca.pem", tmp_path / "away.pem"
            certificates.rename(away)
            with structlog.testing.capture_logs() as logs:

                async def tried_without_certificates() -> bool:
                    tries = [log for log in logs if log["event"] == "bus_client_replaced"]
                    return any("certificates" in log["reason"] for log in tries)

                started = Started(file, nodes)
                await until(tried_without_certificates)
            away.rename(certificates)
            with anyio.fail_after(HANGS_S):
                assert await append(bus, 1) == 2
        assert address_for(folder, config.bus_config, "trainer") != address
        await started.end()
