"""An error that nobody foresaw, planted at one record: the archiver, the monitor and the viewer leave it out and go on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import structlog
from structlog.typing import EventDict

from bus import chain
from bus.bulkhead import Bulkhead
from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.ports import Record
from bus.presence import Status
from bus.topology import task_queue
from ops.archive import following, tables
from ops.archive.archive_source import ArchiveSource
from ops.archive.folder import ArchiveFolder
from ops.archive.keeping import EpisodeKeeper
from ops.archive.verify import verify
from ops.monitor.cells import Cells
from ops.monitor.state import MonitorState
from ops.monitor.watch import monitoring
from ops.web import archive_store
from ops.web.index import EpisodeIndex
from ops.web.stream_store import StreamStore
from schemas.ids import EpisodeId
from schemas.messages import Fault, Role, Split
from tests.builders import WORKER, judgement, task, trajectory
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.runs import archive_world as world
from tests.support.runs.live_world import CONFIG, RUBRIC, LiveRun

pytestmark = pytest.mark.anyio


@contextmanager
def unexpected() -> Iterator[list[EventDict]]:
    """What is logged of errors that nobody foresaw, each with its traceback."""
    found: list[EventDict] = []
    with structlog.testing.capture_logs() as logs:
        yield found
    found.extend(line for line in logs if line["event"] == "unexpected_error")
    assert all(line["exc_info"].__traceback__ is not None for line in found)


def planted(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, poison: object) -> None:
    """Whatever comes past `owner.name` with the episode `poison` in it meets a KeyError."""
    sound: Callable[..., Any] = getattr(owner, name)

    def method(self: object, given: object, *rest: Any, **others: Any) -> object:
        message = given.message if isinstance(given, Record) else given
        if poison in (message, getattr(message, "episode", None)):
            raise KeyError("planted")
        return sound(self, given, *rest, **others)

    monkeypatch.setattr(owner, name, method)


# the archiver ---------------------------------------------------------------------------------------------------------


async def archived(bus: MemoryBus, path: Path) -> tuple[Status, ArchiveFolder, list[EventDict]]:
    status, folder = Status(Role.ARCHIVER, WORKER), ArchiveFolder(path)
    archiver = replace(world.archiver(bus, SUBJECTS, folder), bulkhead=Bulkhead(WorkerContext(bus, SUBJECTS, status)))
    with folder.writing(SUBJECTS.run, ""), unexpected() as logs, anyio.fail_after(HANGS_S):
        await archiver.run(once=True)
    return status, folder, logs


async def check_left_out(bus: MemoryBus, path: Path, poison: int) -> None:
    """All but the episode with this sequence are in the archive, and it is told of everywhere."""
    status, folder, logs = await archived(bus, path)
    item = f"{SUBJECTS.trajectories}/{poison}"
    kept = [ended.task.index async for ended in ArchiveSource(folder).trajectories()]
    assert kept == [index for index in range(4) if index != poison - 1]
    assert [(gap.first_seq, gap.last_seq) for gap in folder.gaps()] == [(poison, poison)]
    assert (verify(folder).num_episodes, verify(folder).damaged) == (3, [])
    assert [line["item"] for line in logs] == [item]
    assert status.heartbeat(0.0).metrics["unexpected"] == 1.0
    told = await bus.last(SUBJECTS.advisories, SUBJECTS.fault(Role.ARCHIVER, item, 1))
    assert told is not None
    assert isinstance(told.message, Fault)
    assert told.message.error == "KeyError: 'planted'"


async def run_of_four() -> MemoryBus:
    bus = MemoryBus(SUBJECTS)
    await world.fill(bus, SUBJECTS, num_episodes=4)
    return bus


async def test_an_episode_that_the_archiver_cannot_keep_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus, poison = await run_of_four(), world.task(1, run=SUBJECTS.run).episode
    planted(monkeypatch, EpisodeKeeper, "keep", poison)
    await check_left_out(bus, tmp_path, poison=2)


async def test_a_row_that_fits_into_no_part_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus, poison, encode = await run_of_four(), world.task(1, run=SUBJECTS.run).episode, tables.encode_part

    def encode_part(rows: list[dict[str, Any]], schema: Any) -> bytes:
        if any(row["episode"] == poison and "outcome" in row for row in rows):
            raise KeyError("planted")
        return encode(rows, schema)

    monkeypatch.setattr(following, "encode_part", encode_part)
    await check_left_out(bus, tmp_path, poison=2)


# the monitor ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A monitor compares its cells with the streams once, when it comes."""
    monkeypatch.setattr("ops.monitor.reconciling.RECONCILE_S", 10 * HANGS_S)


async def check_watched(bus: MemoryBus, holds: Callable[[MonitorState], bool]) -> list[EventDict]:
    """Until a monitor that came to the run holds this and has passed over one record, which it logs and writes nowhere."""
    with unexpected() as logs, anyio.fail_after(HANGS_S):
        async with monitoring(bus, SUBJECTS, CONFIG) as watch:
            await watch.wait_complete()
            await watch.wait_until(lambda state: holds(state) and state.num_passed_over > 0)
            assert watch.state.num_passed_over == 1
    assert not await bus.subjects(SUBJECTS.advisories, SUBJECTS.everything("fault"))
    return logs


@pytest.mark.usefixtures("once")
async def test_a_record_that_the_monitor_cannot_take_in_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    bus = MemoryBus(SUBJECTS, CONFIG.bus_config)
    run, poison, sound = LiveRun(bus), trajectory(task("poison")), trajectory(task("sound"))
    await run.judge(poison)
    await run.judge(sound)
    planted(monkeypatch, MonitorState, "stored", judgement(poison, rubric=RUBRIC))
    logs = await check_watched(bus, lambda state: state.run.num_episodes == 1)
    assert [line["item"] for line in logs] == [f"{SUBJECTS.judged}/1"]


@pytest.mark.usefixtures("once")
async def test_what_the_monitor_hears_and_cannot_take_in_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    bus = MemoryBus(SUBJECTS, CONFIG.bus_config)
    run, poison, sound = LiveRun(bus), task("poison"), task("sound")
    planted(monkeypatch, MonitorState, "heard", poison.episode)
    with unexpected() as logs, anyio.fail_after(HANGS_S):
        async with monitoring(bus, SUBJECTS, CONFIG) as watch:
            await watch.wait_complete()
            for of in (poison, sound):
                await run.tell(of, "deciding", 0)
            await watch.wait_until(lambda state: sound.episode in state.cells.by_episode)
            assert watch.state.num_passed_over == 1
    assert len(logs) == 1


@pytest.mark.usefixtures("once")
async def test_an_episode_that_the_monitor_cannot_look_up_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    bus = MemoryBus(SUBJECTS, CONFIG.bus_config)
    run = LiveRun(bus)
    poison, sound = await run.admit("poison"), await run.admit("sound")
    planted(monkeypatch, Cells, "place", poison.episode)
    logs = await check_watched(bus, lambda state: sound.episode in state.cells.by_episode)
    assert [line["item"] for line in logs] == [poison.episode]


@pytest.mark.usefixtures("once")
async def test_an_unjudged_end_that_the_monitor_cannot_take_in_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    bus = MemoryBus(SUBJECTS, CONFIG.bus_config, (RUBRIC,))
    poison, sound = trajectory(task("poison")), trajectory(task("sound"))
    for ended in (poison, sound):
        await chain.publish_trajectory(bus, SUBJECTS, ended)
    planted(monkeypatch, Cells, "ended", poison.episode)
    logs = await check_watched(bus, lambda state: sound.episode in state.cells.by_episode)
    assert [line["item"] for line in logs] == [f"{SUBJECTS.trajectories}/1"]


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("what", ["stream", "queue"])
async def test_what_the_monitor_cannot_measure_is_passed_over(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = MemoryBus(SUBJECTS, CONFIG.bus_config, (RUBRIC,))
    poison, sound = (task_queue(SUBJECTS, CONFIG.bus_config, split) for split in (Split.TRAIN, Split.EVAL))
    monkeypatch.setattr("ops.monitor.measuring._MEASURE_S", 0.0)
    planted(
        monkeypatch,
        MemoryBus,
        "stream_state" if what == "stream" else "depth",
        SUBJECTS.judged if what == "stream" else poison,
    )
    await bus.append(SUBJECTS.tasks, SUBJECTS.task(Split.EVAL, task("sound").episode), task("sound"))
    logs = await check_watched(
        bus,
        lambda state: state.queues[sound.name].depth.num_pending == 1 and state.store is not None and num_measured(state) > 2,
    )
    assert [line["item"] for line in logs] == [SUBJECTS.judged if what == "stream" else poison.name], "once"


def num_measured(state: MonitorState) -> int:
    """Measurements so far, about: every one asks for every queue."""
    return len(state.server.times_s) // len(state.queues)


@pytest.mark.usefixtures("once")
async def test_what_the_monitor_cannot_let_go_of_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    bus, num_ticks = MemoryBus(SUBJECTS, CONFIG.bus_config), 0

    def expire(self: MonitorState, now: float) -> None:
        nonlocal num_ticks
        num_ticks += 1
        raise KeyError("planted")

    monkeypatch.setattr("ops.monitor.watch._TICK_S", 0.01)
    monkeypatch.setattr(MonitorState, "expire", expire)
    logs = await check_watched(bus, lambda _: num_ticks > 2)
    assert [line["item"] for line in logs] == ["what has expired"], "once"


FAILING_RULE = """
from ops.monitor.rules import alert

@alert("failing")
def failing(look):
    raise KeyError("planted")
"""


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("look", ["now", "for a while"])
async def test_a_rule_that_fails_silences_no_other(look: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bus = MemoryBus(SUBJECTS, CONFIG.bus_config)

    monkeypatch.setattr("ops.monitor.watch._TICK_S", 0.01)
    path = tmp_path / "own.py"
    path.write_text(FAILING_RULE)
    own = (f"{path}:failing",)
    config = replace(CONFIG, monitor_config=replace(CONFIG.monitor_config, raise_after_s=1e-9, alerts=own))
    with unexpected() as logs, anyio.fail_after(HANGS_S):
        async with monitoring(bus, SUBJECTS, config) as watch:
            while not any("passed over" in alert.condition.sentence for alert in watch.alerts):
                await watch.changed.wait()
            if look == "now":
                assert any("passed over" in alert.condition.sentence for alert in watch.conditions_now())
            assert watch.state.num_passed_over == 1
    assert len(logs) == 1


# the page -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["add", "rule"])
async def test_a_record_that_the_page_cannot_take_in_is_left_out(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = MemoryBus(SUBJECTS, CONFIG.bus_config)
    run, poison, sound = LiveRun(bus), trajectory(task("poison")), trajectory(task("sound"))
    for ended in (poison, sound):
        if method == "add":
            await chain.publish_trajectory(bus, SUBJECTS, ended)
        else:
            await run.judge(ended)
    stream = SUBJECTS.trajectories if method == "add" else SUBJECTS.judged
    planted(monkeypatch, EpisodeIndex, method, poison.episode)
    index, revision = EpisodeIndex(RUBRIC), -1
    with unexpected() as logs, anyio.fail_after(HANGS_S):
        async with anyio.create_task_group() as group:
            group.start_soon(StreamStore(bus, SUBJECTS).fill, index)
            while index.reading:
                revision = await index.wait_change(revision)
            group.cancel_scope.cancel()
    assert index.find(sound.episode) is not None
    assert index.find(poison.episode) is None
    assert [line["item"] for line in logs] == [f"{stream}/1"]
    assert len(index.problems) == 1
    assert f"{stream}/1" in index.problems[0]


@pytest.mark.parametrize("method", ["add", "rule"])
async def test_a_row_of_an_archive_that_the_page_cannot_take_in_is_left_out(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder, _ = await archived(await run_of_four(), tmp_path)
    poison, *sound = (world.task(index, run=SUBJECTS.run).episode for index in range(3))
    planted(monkeypatch, EpisodeIndex, method, poison)
    await check_shown_but(folder, poison, sound, whole=method == "add")


@pytest.mark.parametrize("kind", ["trajectory", "judgement"])
async def test_a_row_of_an_archive_that_cannot_be_read_is_left_out(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder, _ = await archived(await run_of_four(), tmp_path)
    poison, *sound = (world.task(index, run=SUBJECTS.run).episode for index in range(3))
    name = f"read_{kind}"
    read: Callable[[tables.Row], Any] = getattr(archive_store, name)

    def failing(row: tables.Row) -> Any:
        if row["episode"] == poison:
            raise ZeroDivisionError("planted")
        return read(row)

    monkeypatch.setattr(archive_store, name, failing)
    await check_shown_but(folder, poison, sound, whole=kind == "trajectory")


async def check_shown_but(folder: ArchiveFolder, poison: EpisodeId, sound: list[EpisodeId], *, whole: bool) -> None:
    """All of an archive but what one episode's row says; of that there is nothing, or its judgements, or its trajectory."""
    index, revision = EpisodeIndex(world.RUBRICS[0]), -1
    with unexpected() as logs, anyio.fail_after(HANGS_S):
        async with anyio.create_task_group() as group:
            group.start_soon(archive_store.ArchiveStore(folder).fill, index)
            while index.reading:
                revision = await index.wait_change(revision)
            group.cancel_scope.cancel()
    assert all((found := index.find(episode)) is not None and found.rulings for episode in sound)
    left = index.find(poison)
    assert left is not None
    assert bool(left.rulings) is whole, "its judgements bring it along; else it is there without them"
    assert {line["item"].rpartition("/")[2] for line in logs} == {poison}
    assert any(poison in problem for problem in index.problems)
