"""A whole run of real role processes goes on while records that cannot be are written with the key of each role."""

import random
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from bus.access import Access
from bus.jetstream import JetStreamBus
from bus.lineage import Lineage, catch_up
from ops.audit.audit import audit
from ops.drills.drill import Drill
from ops.drills.faults import FaultKind
from ops.drills.injection import Injector
from ops.drills.proxy import TcpProxy
from ops.drills.servers import Servers
from ops.drills.settings import DrillSettings
from ops.processes.supervisor import Supervisor
from ops.run.joining import join
from schemas.errors import BusError, StreamFull
from schemas.ids import EpisodeId
from tests.deadlines import HANGS_S
from tests.support.bus.abandoned_sockets import abandoned_sockets
from tests.support.bus.poison import Place, Poison, Poisoner

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.integration,
    abandoned_sockets,
]


_NUM_SUBJECTS = 30
SETTLED = ("unfinished", "unpublished", "unjudged")


class Poisoned(Drill):
    """A drill whose only faults are forged records: it comes to its end when there were some of each kind."""

    def __init__(self, settings: DrillSettings) -> None:
        super().__init__(settings)
        self.written: list[Poison] = []
        self.restarts: dict[str, int] = {}
        self._enough = anyio.Event()

    @property
    def checkpoints(self) -> str:
        return self._subjects.checkpoints

    async def _under_faults(
        self, injector: Injector, supervisor: Supervisor, servers: Servers, proxies: Mapping[str, TcpProxy]
    ) -> None:
        with anyio.move_on_after(self._settings.limit_s) as limit:
            async with anyio.create_task_group() as group:
                group.start_soon(self._forge)
                await self._outcome.ended.wait()
                group.cancel_scope.cancel()
        self.restarts = {status.name: status.num_restarts for status in supervisor.statuses}
        if limit.cancelled_caught:
            self._unfinished = f"not at its end after {self._settings.limit_s:g} s"

    async def _time_is_up(self) -> None:
        await self._enough.wait()

    async def _settle(self) -> None:
        """What was forged is never done with, so that no queue says when all else is: the proof is asked."""
        with anyio.move_on_after(HANGS_S):
            async with join(self._folder, self._config, role=Access.MONITOR, name="settling") as bus:
                while True:
                    with suppress(BusError):
                        faults = (await audit(bus, self._config)).findings.faults
                        if not any(faults[promise] for promise in SETTLED):
                            return
                    await anyio.sleep(0.5)

    async def _forge(self) -> None:
        draw = random.Random(self._settings.seed)
        poisoner = Poisoner(self._subjects, self._config.bus_config.trained_rubric, draw)
        async with AsyncExitStack() as stack:
            buses = {
                key: await stack.enter_async_context(join(self._folder, self._config, role=key, name=f"forger-{key}"))
                for key in (Access.FEEDER, Access.BROWSER, Access.POLICY, Access.JUDGE, Access.TRAINER, Access.CONSUMER)
            }
            lineage = Lineage()
            while True:
                for kind in poisoner.kinds():
                    place = await self._place(buses[Access.BROWSER], draw)
                    newest = (await catch_up(lineage, buses[Access.TRAINER], self._subjects)).newest
                    if place is not None:
                        await self._write(buses, kind(replace(place, newest=newest)))
                    await anyio.sleep(0.02)  # the pace of the forger, nothing that is waited for
                if len({poison.subject for poison in self.written}) > _NUM_SUBJECTS:
                    # A forger without end would outpace the roles of a busy machine.
                    self._enough.set()
                    return

    async def _write(self, buses: Mapping[Access, JetStreamBus], poison: Poison) -> None:
        with suppress(StreamFull):
            await buses[poison.key].append_bytes(poison.stream, poison.subject, poison.data)
            self.written.append(poison)

    async def _place(self, bus: JetStreamBus, draw: random.Random) -> Place | None:
        """A step of an episode that is played now."""
        names = self._subjects
        subjects = [subject.split(".") for subject in await bus.subjects(names.episodes(0), names.everything("ep"))]
        done = {tokens[3] for tokens in subjects if tokens[-1] == "done"}
        live = [tokens for tokens in subjects if len(tokens) == 7 and tokens[5] == "obs" and tokens[3] not in done]
        if not live:
            return None
        tokens = draw.choice(live)
        return Place(EpisodeId(tokens[3]), int(tokens[4]), int(tokens[6]))


async def test_a_run_goes_on_while_records_that_cannot_be_are_written_to_every_stream(tmp_path: Path) -> None:
    settings = DrillSettings(
        folder=tmp_path / "run",
        duration_s=1.0,
        seed=5,
        kinds=(FaultKind.KILL,),
        limit_s=HANGS_S,
        overrides=[
            "env_config.server_size=8",
            "bus_config.num_shards=1",
            "env_config.train_tasks_rollout_size=20",
            # A run that waits most of the time leaves a busy machine to the forger.
            "feeder_config.max_concurrent=16",
            "simulation_config.policy_latency_ms=300",
        ],
    )
    drill = Poisoned(settings)

    report = await drill.run()

    assert not report.failure
    assert drill.restarts
    assert not any(drill.restarts.values()), drill.restarts
    found = report.audit.findings
    for promise in (*SETTLED, "unfounded"):
        assert not found.faults[promise], promise
    # One that is forged may stand: behind its last version the trainer has none of its own to put in the place.
    num_beyond = found.num_checkpoints - report.versions_expected
    assert num_beyond in (0, 1)
    forged = {poison.subject.rpartition(".")[2] for poison in drill.written if "-ghost" in poison.subject}
    assert set(found.unknown) <= forged | {"forged-m0"}
    announced = {poison.subject for poison in drill.written if poison.stream == drill.checkpoints}
    assert announced
    named = [fault for fault in found.unsound if f" of {drill.checkpoints} is " in fault]
    assert len(named) >= len(announced) - num_beyond, "each forged announcement is named"
