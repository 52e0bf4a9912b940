"""The monitor on a real server with nothing but the monitor's key: what it shows is what the streams hold."""

import json
import os
import pty
import signal
import termios
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from anyio.abc import Process
from prometheus_client.parser import text_string_to_metric_families

from bus import chain
from bus.access import Access
from bus.background import background
from bus.jetstream import connect
from bus.ports import Record
from bus.presence import presence
from bus.server import address_of
from bus.server.ports import held_port
from bus.settlement import settle
from bus.topology import task_queue
from ops.monitor.cells import Phase
from ops.monitor.watch import MonitorWatch, monitoring
from ops.processes.role_process import millrace_command, millrace_environment
from ops.web.live_episode import live_episode, screenshot_at
from schemas.errors import NotPermitted, RecordGone
from schemas.ids import WorkerId
from schemas.messages import DeadLetter, LetterResent, Outcome, Role, Split, StepPhase
from tests.builders import WORKER, judgement, observation, step_request, task, trajectory
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.bus.played import play
from tests.support.runs.live_world import CONFIG, RUBRIC, LiveRun
from tests.support.runs.running_run import running_run

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
SCREENSHOT = b"x" * 200_000


@dataclass
class World(LiveRun):
    """A run with its own server; `bus` is the administrator's."""

    folder: Path

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[MonitorWatch]:
        address = address_of(self.folder / "server", role=Access.MONITOR)
        bounds = replace(CONFIG.monitor_config, ended_cell_s=HANGS_S)
        async with (
            connect(address, SUBJECTS, CONFIG.bus_config, name="monitor") as bus,
            monitoring(bus, SUBJECTS, replace(CONFIG, monitor_config=bounds), disk=self.folder) as watch,
        ):
            yield watch


@pytest.fixture
async def world(tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr("ops.monitor.watch._JOIN_S", HANGS_S)
    async with running_run(tmp_path) as bus:
        yield World(bus, tmp_path)


async def until(watch: MonitorWatch, phases: dict[str, Phase]) -> None:
    """Returns when the live episodes are at these phases, by task."""
    with anyio.fail_after(HANGS_S):
        await watch.wait_until(lambda state: {cell.task: cell.phase for cell in state.cells} == phases)


async def test_an_episode_is_followed_from_its_admission_to_its_judgement(world: World) -> None:
    async with world.watching() as watch:
        with anyio.fail_after(HANGS_S):
            await watch.wait_complete()
        one = await world.admit("t1")
        await until(watch, {"t1": Phase.QUEUED})
        owner = await world.take(one)
        await until(watch, {"t1": Phase.OPENING})
        seq = await owner.observe(observation(one, data=SCREENSHOT))
        await world.tell(one, "deciding", 0)
        await until(watch, {"t1": Phase.DECIDING})
        owner.answered(await chain.answer(world.bus, SUBJECTS, seq, step_request(one)))
        await world.tell(one, "acting", 0)
        await until(watch, {"t1": Phase.ACTING})
        ended = trajectory(one, num_observations=1, num_steps=1)
        await owner.finish(ended)
        await chain.publish_trajectory(world.bus, SUBJECTS, ended)
        await until(watch, {"t1": Phase.JUDGING})
        await world.judge(ended)
        await until(watch, {"t1": Phase.ENDED})
        (cell,) = watch.state.cells
        assert (cell.outcome, cell.reward, cell.worker) == (Outcome.DONE, 1.0, WORKER)
        assert watch.state.run.num_episodes == 1


async def test_a_monitor_that_joins_late_finds_what_is_live(world: World) -> None:
    """And reads no screenshot for it: that of the live episode is larger than all that the monitor receives."""
    ended = await play(world.bus, task("judged"))
    await world.judge(ended)
    await play(world.bus, task("unjudged"))
    await world.admit("queued")
    opening, deciding, acting = [await world.admit(name) for name in ("opening", "deciding", "acting")]
    await world.take(opening)
    await (await world.take(deciding)).observe(observation(deciding, data=SCREENSHOT))
    owner = await world.take(acting)
    seq = await owner.observe(observation(acting, data=SCREENSHOT))
    await chain.answer(world.bus, SUBJECTS, seq, step_request(acting))
    async with world.watching() as watch:
        with anyio.fail_after(HANGS_S):
            await watch.wait_complete()
        phases = {cell.task: cell.phase for cell in watch.state.cells}
        assert phases == {
            "judged": Phase.ENDED,
            "unjudged": Phase.JUDGING,
            "queued": Phase.QUEUED,
            "opening": Phase.OPENING,
            "deciding": Phase.DECIDING,
            "acting": Phase.ACTING,
        }
        assert {cell.worker for cell in watch.state.cells if cell.phase is not Phase.QUEUED} == {WORKER}
        assert {cell.max_steps for cell in watch.state.cells if cell.phase is Phase.ACTING} == {9}


async def test_what_was_not_heard_is_looked_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if messages had been lost: what is on no stream goes, and what has ended is found."""
    monkeypatch.setattr("ops.monitor.reconciling.RECONCILE_S", 0.2)
    monkeypatch.setattr("ops.monitor.reconciling._FRESH_S", 0.0)
    async with world.watching() as watch:
        with anyio.fail_after(HANGS_S):
            await watch.wait_complete()
        watch.state.heard(Record("", "x", 0, task("never")), time.time())
        await play(world.bus, task("lost"))
        del watch.state.cells.by_episode[task("lost").episode]
        watch.state.heard(Record("", "x", 0, task("lost")), time.time())
        await until(watch, {"lost": Phase.JUDGING})
        await world.judge(trajectory(task("lost")))
        await until(watch, {"lost": Phase.ENDED})


async def test_queues_streams_and_letters(world: World) -> None:
    first, _ = await world.admit("t1"), await world.admit("t2")
    for seq in (1, 2):
        letter = DeadLetter(stream=SUBJECTS.tasks, consumer="c", seq=seq, subject="s", reason="corrupt")
        await world.bus.dead_letter(letter)
    await world.bus.append(
        SUBJECTS.advisories, SUBJECTS.resent(1), LetterResent(letter_seq=1, stream=SUBJECTS.tasks, seq=3, at=1.0)
    )
    queue = task_queue(SUBJECTS, CONFIG.bus_config, Split.TRAIN)
    async with (
        presence(world.bus, SUBJECTS, Role.BROWSER, WorkerId("browser-1")),
        world.bus.work(queue, prefetch=0) as inbox,
    ):
        delivery = await anext(inbox)
        async with settle(world.bus, delivery, WORKER), world.watching() as watch:
            with anyio.fail_after(HANGS_S):
                await watch.wait_complete()
            state = watch.state
            found = state.queues[queue.name]
            assert (found.depth.num_pending, found.depth.num_in_flight) == (1, 1)
            assert found.oldest_s is not None
            assert state.streams[SUBJECTS.tasks].num_messages == 2
            assert state.store is not None
            assert state.store.num_bytes > 0
            assert (list(state.letters), state.server.error) == ([(SUBJECTS.advisories, 2)], "")
            assert state.disk is not None
            (worker,) = state.workers.in_order()
            assert {"cpu_s", "memory_mib"} <= set(worker.metrics)
            assert first.episode in state.cells.by_episode


async def test_the_key_can_write_nothing(world: World) -> None:
    address = address_of(world.folder / "server", role=Access.MONITOR)
    async with connect(address, SUBJECTS, replace(CONFIG.bus_config, request_timeout_s=HANGS_S), name="monitor") as bus:
        one = task()
        with pytest.raises(NotPermitted):
            await bus.append(SUBJECTS.tasks, SUBJECTS.task(Split.TRAIN, one.episode), one)
        with pytest.raises(NotPermitted):
            await bus.append(SUBJECTS.judged, SUBJECTS.judgement(Split.TRAIN, RUBRIC, one.episode), judgement(trajectory(one)))


async def test_offers_to_a_worker_that_has_gone_are_declined_at_once(world: World) -> None:
    """Nobody may listen where steps are offered: the server would no longer say that nobody is there."""
    async with world.watching() as watch:
        with anyio.fail_after(HANGS_S):
            await watch.wait_complete()
        wake = StepPhase(episode=task().episode, attempt=1, step=0, phase="deciding", worker=WORKER)
        with anyio.fail_after(HANGS_S):
            assert not await world.bus.offer(SUBJECTS.wake(WorkerId("gone")), wake, timeout_s=10 * HANGS_S)


@asynccontextmanager
async def serving(world: World, *options: str) -> AsyncIterator[tuple[Process, int, str]]:
    """A monitor, the port that these options end with, and its first line."""
    said = ""
    with held_port() as port:
        command = millrace_command(["monitor", "--run-dir", str(world.folder), *options, str(port)])
        async with await anyio.open_process(command, env=millrace_environment()) as process:
            assert process.stdout is not None
            try:
                with anyio.fail_after(HANGS_S):
                    while "\n" not in said:
                        said += (await process.stdout.receive()).decode()
                yield process, port, said
            finally:
                if process.returncode is None:
                    process.kill()


async def test_prometheus_scrapes_a_monitor(world: World) -> None:
    await world.admit("queued")
    async with serving(world, "--prometheus") as (process, port, said):
        url = f"http://127.0.0.1:{port}/metrics"
        assert url in said
        page = await anyio.to_thread.run_sync(scrape, url)
        process.terminate()
        assert await process.wait() == 0
    families = {family.name: family for family in text_string_to_metric_families(page)}
    assert {sample.labels["run"] for sample in families["millrace_server_up"].samples} == {world.folder.name}


async def test_the_monitors_key_reads_a_live_episode_and_its_screenshot(world: World) -> None:
    one = await world.admit("live")
    owner = await world.take(one)
    seq = await owner.observe(observation(one, data=SCREENSHOT))
    async with connect(
        address_of(world.folder / "server", role=Access.MONITOR), SUBJECTS, CONFIG.bus_config, name="monitor"
    ) as bus:
        found = await live_episode(bus, SUBJECTS, one.episode, attempt=0)
        assert found.now is not None
        assert (found.attempt, found.now.step, found.now.answer, found.before, found.outcome) == (1, 0, None, None, "")
        assert found.now.page is not None
        assert found.now.page.screenshot is not None
        screenshot = await screenshot_at(bus, SUBJECTS, one.episode, 1, 0, found.now.page.screenshot.sha256)
        assert screenshot.data == SCREENSHOT
        with pytest.raises(RecordGone):
            await screenshot_at(bus, SUBJECTS, one.episode, 1, 0, "0" * 64)
        owner.answered(await chain.answer(world.bus, SUBJECTS, seq, step_request(one)))
        found = await live_episode(bus, SUBJECTS, one.episode, attempt=1)
        assert found.now is not None
        assert found.now.answer is not None
        assert found.now.answer.words == "click at [500, 500]"
        await owner.observe(observation(one, 1))
        found = await live_episode(bus, SUBJECTS, one.episode, attempt=1)
        assert found.now is not None
        assert (found.now.step, found.now.answer) == (1, None)
        assert found.before is not None


async def test_the_page_is_served_with_metrics_beside_it(world: World) -> None:
    played = await play(world.bus, task("played"))
    await world.judge(played)
    await world.admit("queued")
    async with serving(world, "--web", "--port") as (process, port, said):
        url = said.split()[0]
        assert url == f"http://127.0.0.1:{port}/"
        assert "live.js" in await anyio.to_thread.run_sync(scrape, url)
        page = await anyio.to_thread.run_sync(scrape, f"{url}metrics")
        assert {"millrace_server_up", "millrace_episodes"} <= {one.name for one in text_string_to_metric_families(page)}
        # The monitor's key reads finished episodes too.
        assert RUBRIC in await anyio.to_thread.run_sync(scrape, f"{url}api/episodes/{played.episode}")
        assert "queued-m0" in await anyio.to_thread.run_sync(first_queued, f"{url}api/live")
        process.send_signal(signal.SIGINT)
        with anyio.fail_after(HANGS_S):
            assert await process.wait() == 130


def first_queued(url: str) -> str:
    """The first queued episode that a page is told of."""
    with urllib.request.urlopen(url, timeout=HANGS_S) as answer:
        for line in answer:
            if line.startswith(b"data: ") and (found := [name for name in json.loads(line[6:])["cells"] if "queued" in name]):
                return str(found[0])
    raise AssertionError("the stream ended")


def scrape(url: str) -> str:
    with urllib.request.urlopen(url, timeout=HANGS_S) as answer:
        return str(answer.read().decode())


async def test_keys_change_the_view_and_quit(world: World) -> None:
    await world.admit("queued")
    ours, theirs = pty.openpty()
    try:
        before = termios.tcgetattr(theirs)
        command = millrace_command(["monitor", "--run-dir", str(world.folder)])
        environment = millrace_environment() | {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
        async with await anyio.open_process(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
            await shown(ours, b"queued \x1b[0m\x1b[1m1")
            os.write(ours, b"4")
            await shown(ours, b"what, and what to do")
            os.write(ours, b"q")
            with anyio.fail_after(HANGS_S):
                async with background(partial(read_on, ours)):
                    assert await process.wait() == 0
        assert termios.tcgetattr(theirs) == before
    finally:
        os.close(ours)
        os.close(theirs)


async def shown(terminal: int, text: bytes) -> None:
    """Returns when these bytes were written."""
    seen = b""
    with anyio.fail_after(HANGS_S):
        while text not in seen:
            await anyio.wait_readable(terminal)
            seen += os.read(terminal, 65536)


async def read_on(terminal: int) -> None:
    """Whoever writes to a terminal that nobody reads waits when it is full."""
    while True:
        await anyio.wait_readable(terminal)
        os.read(terminal, 65536)


async def printed(world: World, *options: str) -> str:
    command = millrace_command(["monitor", "--run-dir", str(world.folder), *options])
    done = await anyio.run_process(command, env=millrace_environment())
    return done.stdout.decode()


async def test_once_prints_the_whole_and_ends(world: World) -> None:
    await world.judge(await play(world.bus, task("judged")))
    await world.admit("queued")
    update = json.loads(await printed(world, "--once", "--json", f"monitor_config.ended_cell_s={HANGS_S}"))
    assert update["sections"]["metrics"]["episodes_judged"] == 1
    assert {cell["task"]: cell["phase"] for cell in update["cells"].values()} == {"judged": "ended", "queued": "queued"}
    alerts = {(alert["kind"], alert["subject"]) for alert in update["sections"]["alerts"]}
    assert ("role_missing", "browsers_train") in alerts
    text = await printed(world, "--once")
    assert "episodes judged 1" in text
    assert "queued 1" in text
    assert "CRITICAL" in text
