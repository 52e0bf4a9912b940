"""Every role comes back after the records that it lives from have aged out: real processes, a real server.

What has aged out is removed here, by the administrator: an age in seconds is one that a slow machine's live records reach.
"""

import time
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import anyio
import msgspec
import pytest

from bus import BEGINNING, chain, connect
from bus.access import Access
from ops.drills.days import play_days
from ops.drills.scaled_run import ScaledRun, ScaledSettings, names_of, scaled_run
from ops.monitor.watch import monitoring
from ops.processes.role_process import millrace_command
from ops.processes.supervisor import RoleSpec
from ops.run.joining import join
from schemas.ids import EpisodeId, GroupId, episode_id
from schemas.messages import Role, Task
from tests.deadlines import HANGS_S
from tests.support.polling import until

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
_AGELESS = ("bus_config.episodes_max_age_s=86400", "bus_config.results_max_age_s=86400")
_QUICK = (
    *_AGELESS,
    "bus_config.steps_max_age_s=3",
    "bus_config.heartbeats_max_age_s=5",
    "bus_config.advisories_max_age_s=5",
    "feeder_config.audit_s=3",
    "archive_config.seconds_per_part=1",
)
_DURABLE = "mine"
_LIMIT_S = 1200.0


@pytest.mark.parametrize(
    ("age", "roles"),
    [
        ("chains", (Role.FEEDER, Role.BROWSER, Role.POLICY, Role.TRAINER)),
        ("results", (Role.FEEDER, Role.BROWSER, Role.JUDGE, Role.TRAINER)),
    ],
)
async def test_a_role_that_was_away_while_records_aged_out_goes_on(age: str, roles: tuple[Role, ...], tmp_path: Path) -> None:
    """One after the other: nothing is begun twice, what was admitted ends once at most, and versions go on."""
    async with scaled_run(ScaledSettings(folder=tmp_path / "run", overrides=_QUICK)) as run:
        assert await run.until(lambda: len(run.passing.versions) > 2, limit_s=_LIMIT_S)
        for role in roles:
            await run.supervisor.stop(*names_of(role))
            await age_out(run, results=age == "results")
            before = len(run.passing.versions)
            for name in names_of(role):
                run.start(role, name)
            assert await run.until(partial(published, run, before + 3), limit_s=_LIMIT_S), (
                f"versions go on behind {role.value}"
            )
            assert [fault for fault in run.passing.proof() if "never" not in fault] == [], role.value


def published(run: ScaledRun, number: int) -> bool:
    return len(run.passing.versions) >= number


async def age_out(run: ScaledRun, *, results: bool) -> None:
    """Removes all that stands now."""
    names = run.subjects
    async with join(run.folder, run.config, role=Access.ADMIN, name="age") as bus:
        for stream in (names.episodes(0), *((names.trajectories, names.judged, names.calls) if results else ())):
            await bus.purge(stream, ">")


async def test_readers_that_were_away_while_records_aged_out_go_on(tmp_path: Path) -> None:
    """An archiver, a consumer with a place of its own and a monitor: none is in the way of the run, or of another."""
    seen: Counter[EpisodeId] = Counter()
    async with scaled_run(ScaledSettings(folder=tmp_path / "run", overrides=_QUICK)) as run:
        await archives(run, more_than=0)
        await consume(run, seen, 3)
        num_archived, last_seq = len(parts(run)), await run.bus.last_seq(run.subjects.trajectories)

        async def is_behind() -> bool:
            return await run.bus.last_seq(run.subjects.trajectories) > last_seq

        await until(is_behind)
        await age_out(run, results=True)
        await consume(run, seen, 3)
        await archives(run, more_than=num_archived)
        async with monitoring(run.bus, run.subjects, run.config, disk=None) as watch:
            with anyio.fail_after(HANGS_S):
                await watch.wait_complete()
                await watch.wait_until(lambda state: len(state.workers.of(Role.BROWSER, time.time())) == 1)
        assert run.passing.faults == []
    assert max(seen.values()) == 1, "a place is kept"
    assert (run.folder.path / "archive" / "gaps.jsonl").read_text(), "what aged out before it was archived is named"


def parts(run: ScaledRun) -> list[Path]:
    return sorted((run.folder.path / "archive").glob("*/*.parquet"))


async def archives(run: ScaledRun, *, more_than: int) -> None:
    """Runs an archiver until there are more parts than so many."""
    argv = millrace_command(("archive", "--run-dir", str(run.folder.path), "--name", "archiver-1"))
    run.supervisor.start(RoleSpec(role=Role.ARCHIVER, name="archiver-1", argv=argv))
    assert await run.until(lambda: len(parts(run)) > more_than, limit_s=_LIMIT_S)
    await run.supervisor.stop("archiver-1")


async def consume(run: ScaledRun, seen: Counter[EpisodeId], count: int) -> None:
    """Reads so many trajectories from where the consumer's place is."""
    async with AsyncExitStack() as stack:
        stack.enter_context(anyio.fail_after(HANGS_S))
        opened = await stack.enter_async_context(connect(run.folder.path, name="consumer"))
        items = opened.trajectories(start=BEGINNING, durable=_DURABLE)
        async for item in items:
            seen[item.message.episode] += 1
            count -= 1
            if not count:
                return


async def test_days_pass_with_a_failover_each(tmp_path: Path) -> None:
    settings = ScaledSettings(folder=tmp_path / "run", day_s=6.0, seed=2, overrides=_AGELESS)
    report = await play_days(settings, num_days=5)
    assert report.holds, report.as_json()
    assert len(report.days) == 5
    assert report.days[-1].version > report.days[0].version


async def test_what_a_stopped_feeder_left_half_admitted_is_played_before_the_end(tmp_path: Path) -> None:
    async with scaled_run(ScaledSettings(folder=tmp_path / "run", day_s=600.0)) as run:
        assert await run.until(lambda: len(run.passing.versions) > 1, limit_s=_LIMIT_S)
        await run.supervisor.stop(*names_of(Role.FEEDER))
        async with join(run.folder, run.config, role="feeder", name="half") as bus:
            record = await chain.read_task(bus, run.subjects, next(iter(run.passing.admitted)))
            assert record is not None
            assert isinstance(record.message, Task)
            group = GroupId("train-r9999-half")
            half = msgspec.structs.replace(record.message, group=group, episode=episode_id(group, 0))
            await chain.admit(bus, run.subjects, half)
        assert await run.until(lambda: half.episode in run.passing.admitted, limit_s=_LIMIT_S)
        await run.settle()
        assert run.passing.proof() == []
