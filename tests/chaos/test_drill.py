"""Small fault drills: the real roles as processes, killed, stopped and cut off until the run has ended, and then the proof."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import pytest

from ops.drills.drill import Drill
from ops.drills.faults import FaultKind, Injected
from ops.drills.injection import Injector
from ops.drills.proxy import TcpProxy
from ops.drills.report import Report
from ops.drills.servers import Servers
from ops.drills.settings import DrillSettings
from ops.processes.role_process import millrace_command
from ops.processes.supervisor import Supervisor
from tests.deadlines import HANGS_S
from tests.support.bus.abandoned_sockets import abandoned_sockets
from tests.support.polling import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.integration,
    abandoned_sockets,
]
_SMALL = ("env_config.server_size=4", "env_config.train_tasks_rollout_size=10", "feeder_config.max_concurrent=30")


class Thorough(Drill):
    """Where time ends it, it goes on until each of its kinds of fault has happened."""

    _happened: Sequence[Injected] = ()

    async def _under_faults(
        self, injector: Injector, supervisor: Supervisor, servers: Servers, proxies: Mapping[str, TcpProxy]
    ) -> None:
        self._happened = injector.log
        await super()._under_faults(injector, supervisor, servers, proxies)

    async def _time_is_up(self) -> None:
        await super()._time_is_up()
        await until(self._each_has_happened)

    async def _each_has_happened(self) -> bool:
        return set(self._settings.kinds) <= {fault.kind for fault in self._happened}


async def drilled(settings: DrillSettings) -> Report:
    report = await Thorough(settings).run()
    report.write(settings.folder / "report.json")
    return report


async def test_a_run_on_one_server_keeps_its_promises_under_every_kind_of_fault(tmp_path: Path) -> None:
    # Few slots, so that the pages' own latency alone keeps the run going for long enough on the fastest machine; and a pause
    # between faults in which a busy machine starts a server and those who need it.
    settings = DrillSettings(
        folder=tmp_path / "run",
        num_episodes=300,
        seed=3,
        fault_interval_s=1.5,
        limit_s=1200.0,
        settle_s=HANGS_S,
        overrides=["env_config.server_size=4"],
    )

    report = await drilled(settings)

    assert report.holds, report.as_json()
    assert report.audit.findings.num_tasks >= 300
    assert len(report.faults) >= 5
    assert report.num_looks > 0


async def test_a_drill_that_time_ends_is_as_whole_as_any(tmp_path: Path) -> None:
    """Every process of a role away until its wake-ups have aged out, and clocks that jump, until the time is up."""
    settings = DrillSettings(
        folder=tmp_path / "run",
        duration_s=20.0,
        seed=5,
        fault_interval_s=1.0,
        kinds=(FaultKind.AGE, FaultKind.CLOCK, FaultKind.KILL),
        limit_s=1200.0,
        settle_s=HANGS_S,
        overrides=_SMALL,
    )

    report = await drilled(settings)

    assert report.holds, report.as_json()
    assert {fault.kind for fault in report.faults} == {FaultKind.AGE, FaultKind.CLOCK, FaultKind.KILL}
    assert report.audit.findings.num_tasks == report.num_expected > 0
    assert any((tmp_path / "run" / "clocks").iterdir())


async def test_a_run_on_three_servers_keeps_its_promises_when_leaders_are_killed(tmp_path: Path) -> None:
    kinds = (FaultKind.KILL_LEADER, FaultKind.KILL)
    settings = DrillSettings(
        folder=tmp_path / "run",
        duration_s=20.0,
        num_servers=3,
        seed=4,
        fault_interval_s=4.0,
        kinds=kinds,
        limit_s=1200.0,
        settle_s=HANGS_S,
        overrides=_SMALL,
    )

    report = await drilled(settings)

    assert report.holds, report.as_json()
    assert any(fault.kind is FaultKind.KILL_LEADER for fault in report.faults)


async def test_a_folder_with_a_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("save_path: x\n")
    command = millrace_command(["chaos", "--out", str(tmp_path), "--episodes", "1"])

    ended = await anyio.run_process(command, check=False)

    assert ended.returncode == 78
    assert b"holds a run already" in ended.stderr
