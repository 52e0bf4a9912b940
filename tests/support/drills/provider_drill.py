"""A whole run whose sessions are a failing provider's, and whose browser workers are killed: what the provider counts then."""

import os
import random
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from bus.background import background
from ops.audit.feed import Feed
from ops.audit.ledger import read_ledger
from ops.audit.promises import check
from ops.run.folder import RunFolder
from ops.simulation.material import ensure_demo_task_file
from schemas.errors import BusError
from schemas.messages import Heartbeat, Role
from tests.support.browsers.provided_doubles import Chromiums, doubles
from tests.support.browsers.scripted_provider import Fault, ScriptedProvider, scripted_provider
from tests.support.drills.simulated_run import SimulatedRun, simulated_run

LEASE_S = 60.0
_LIMIT_S = 1500.0
_FAULTY = 0.33
_FAULTS = tuple(fault for fault in Fault if fault is not Fault.NONE)


@dataclass(frozen=True)
class Part:
    """What differs between the two runs."""

    browsers: str
    episodes: int
    workers: int
    slots: int
    room: int
    """Sessions at once."""
    kill_every_s: float
    lives_s: float
    """Of sessions that are lost or expire."""
    mortal: int = 0
    """Further workers, which are killed for good."""
    overrides: Sequence[str] = ()


@dataclass(frozen=True)
class Row:
    browsers: str
    episodes: int
    kills: int
    for_good: int
    """Of the kills: no worker of that name came back."""
    sessions: int
    most_at_once: int
    refused_full: int
    lost: int
    """Episodes without exactly one end and one judgement."""
    failed: int
    """Episodes that ended as failures, with the reason."""
    rewarded_failures: int
    orphans: int
    """Sessions that run `swept_s` after the last episode's end."""
    oldest_s: float
    """The longest that any session ran: below its lease."""
    seconds: float


def _overrides(part: Part, provider: ScriptedProvider) -> list[str]:
    return [
        "browser_config.provider=browserbase",
        f"browser_config.provider_url={provider.url}",
        f"browser_config.provider_lease_s={LEASE_S}",
        "env_config.task_timeout_minutes=0.75",
        f"env_config.server_size={part.slots}",
        f"env_config.train_tasks_rollout_size={part.episodes}",
        "feeder_config.num_iterations=1",
        f"feeder_config.max_concurrent={2 * part.workers * part.slots}",
        "simulation_config.step_latency_ms=50",
        "simulation_config.policy_latency_ms=50",
        *part.overrides,
    ]


class Killer:
    """Kills one browser worker after the other; the last of them, which had names of their own, for good."""

    def __init__(self, run: SimulatedRun, part: Part, rng: random.Random) -> None:
        self._run, self._part, self._rng = run, part, rng
        self._mortal = [f"late-browser-{number}" for number in range(1, part.mortal + 1)]
        self._killed_at: dict[str, float] = {}
        """In Unix seconds, by name."""
        self.num_kills = self.num_for_good = 0

    async def keep(self) -> None:
        supervisor = self._run.roles.supervisor
        while True:
            await anyio.sleep(self._rng.uniform(0.5, 1.5) * self._part.kill_every_s)
            for_good = self._mortal and self.num_kills % 3 == 2
            name = self._mortal[-1] if for_good else f"browser-{self._rng.randint(1, self._part.workers)}"
            if (pid := supervisor.pid(name)) is None or not await self._has_joined(name):
                continue
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self._killed_at[name] = time.time()
                self.num_kills += 1
            if for_good:
                self._mortal.pop()
                self.num_for_good += 1
                await supervisor.stop(name)

    async def _has_joined(self, name: str) -> bool:
        """Since its last kill: one that takes long to come up would be killed before it has done anything."""
        bus, subjects, since = self._run.bus, self._run.subjects, self._killed_at.get(name, 0.0)
        try:
            records = await bus.history(subjects.heartbeats, subjects.everything("heartbeat", Role.BROWSER.value))
        except BusError:
            return False
        beats = [record.message for record in records if isinstance(record.message, Heartbeat)]
        return any(beat.worker == name and beat.at > since and beat.state in ("waiting", "working") for beat in beats)


async def drill(part: Part, provider: ScriptedProvider, folder: Path, *, swept_s: float = LEASE_S) -> Row:
    """`swept_s`: how long sessions that nobody holds may run after the last episode's end."""
    began = time.monotonic()
    if part.browsers == "Chromium":
        ensure_demo_task_file(RunFolder(folder).tasks / "train.jsonl", num_tasks=part.episodes)
    crew = {Role.BROWSER: part.workers, Role.POLICY: 1, Role.JUDGE: 1}
    async with simulated_run(folder, _overrides(part, provider), crew) as run:
        run.roles.guests(RunFolder(folder).config, prefix="late-").start(Role.BROWSER, count=part.mortal)
        killer = Killer(run, part, random.Random(0))
        async with background(killer.keep):
            await run.play(_LIMIT_S)
        with anyio.move_on_after(swept_s):
            await provider.until(lambda provider: not provider.running)
        ledger = await read_ledger(run.bus, run.subjects)
        found = check(ledger, feed=Feed.of(run.config))
    sessions = provider.sessions.values()
    missing = len(found.unfinished) + len(found.unpublished) + len(found.unjudged) + found.num_duplicates
    return Row(
        browsers=part.browsers,
        episodes=part.episodes,
        kills=killer.num_kills,
        for_good=killer.num_for_good,
        sessions=len(sessions),
        most_at_once=provider.most_at_once,
        refused_full=provider.num_full,
        lost=abs(part.episodes - found.num_tasks) + missing,
        failed=sum(not ruled.finished for ruled in ledger.ruled),
        rewarded_failures=sum(not ruled.finished and ruled.reward is not None for ruled in ledger.ruled),
        orphans=len(provider.running),
        oldest_s=max(session.age_s for session in sessions),
        seconds=time.monotonic() - began,
    )


def _faults(number: int) -> Fault:
    rng = random.Random(number)
    return rng.choice(_FAULTS) if rng.random() < _FAULTY else Fault.NONE


@asynccontextmanager
async def provider_of(part: Part, folder: Path) -> AsyncIterator[ScriptedProvider]:
    """`folder`: for profiles."""
    scripted = partial(scripted_provider, faults=_faults, most=part.room, slow_s=1.0, lives_s=part.lives_s)
    if part.browsers == "Chromium":
        behind = Chromiums(folder)
        async with scripted(behind) as provider:
            try:
                yield provider
            finally:
                await behind.stop_all()
    else:
        async with doubles() as simulated, scripted(simulated) as provider:
            yield provider
