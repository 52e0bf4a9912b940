"""`bus.connect` on a real server: the consumer's own key, every way to name a run, and what is said when it is not there."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskStatus
from nats.aio.msg import Msg

from bus import NEW, connect
from bus.child_process import start_process
from bus.jetstream import JetStreamBus, create_topology
from bus.jetstream import connect as connect_bus
from bus.jetstream.calls import NoAnswer
from bus.jetstream.link import Link
from bus.server import nats_server
from bus.server.embedded import address_of
from bus.subjects import Subjects
from bus.topology import shared_queues, streams
from ops.processes.role_process import millrace_environment
from schemas.bus_config import BusConfig
from schemas.errors import BusUnavailable, ConfigurationError, NotPermitted
from schemas.ids import RunName
from schemas.messages import Heartbeat, Role
from tests.builders import RUN, WORKER, task
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.bus.played import play
from tests.support.closed_port import closed_port
from tests.support.polling import until
from tests.support.runs.leaving_role import role_command
from tests.support.runs.running_run import running_run

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


@pytest.fixture
async def bus(tmp_path: Path, anyio_backend: str) -> AsyncIterator[JetStreamBus]:
    async with running_run(tmp_path) as bus:
        yield bus


def keys(run_dir: Path) -> Path:
    return run_dir / "server" / "keys" / RUN


def url(run_dir: Path) -> str:
    return address_of(run_dir / "server").url


async def test_a_consumer_follows_a_run_with_its_own_key(bus: JetStreamBus, tmp_path: Path) -> None:
    await play(bus, task("old"))
    async with connect(tmp_path) as run, run.trajectories(start=NEW, durable="mine", screenshots=True) as items:
        await play(bus, task("a"), num_steps=2)
        with anyio.fail_after(HANGS_S):
            item = await anext(items)
        assert item.message.episode == task("a").episode
        assert [screenshot.data for screenshot in await item.screenshots()] == [b"screenshot 0", b"screenshot 1"]
    record = await bus.last(SUBJECTS.positions, SUBJECTS.position("mine"))
    assert record is not None


async def test_a_run_is_named_by_address_too(bus: JetStreamBus, tmp_path: Path) -> None:
    await play(bus, task("a"))
    async with connect(url=url(tmp_path), run=RUN, keys=keys(tmp_path)) as run:
        assert [item.seq async for item in run.trajectories(follow=False)] == [1]


async def test_a_server_that_does_not_answer_once_is_asked_again(
    bus: JetStreamBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, unanswered = Link.request, list[str]()

    async def lost(self: Link, subject: str, payload: bytes = b"", *, timeout_s: float) -> Msg:
        if ".STREAM.INFO." in subject and not unanswered:
            unanswered.append(subject)
            raise NoAnswer("it has much to do")
        return await request(self, subject, payload, timeout_s=timeout_s)

    await play(bus, task("a"))
    monkeypatch.setattr(Link, "request", lost)
    async with connect(tmp_path) as run:
        assert unanswered == [f"$JS.API.STREAM.INFO.{SUBJECTS.trajectories}"]
        assert [item.seq async for item in run.trajectories(follow=False)] == [1]


async def test_a_consumer_may_write_nothing_but_its_place(bus: JetStreamBus, tmp_path: Path) -> None:
    queued = task("a")
    async with connect(tmp_path) as run:
        with pytest.raises(NotPermitted):
            await run.bus.append(SUBJECTS.tasks, SUBJECTS.task(queued.split, queued.episode), queued)
        with pytest.raises(NotPermitted):
            await anext(run.heartbeats())
    async with connect(tmp_path, role="monitor") as run:
        beat = Heartbeat(role=Role.JUDGE, worker=WORKER, state="waiting", at=0.0)
        await bus.append(SUBJECTS.heartbeats, SUBJECTS.heartbeat(Role.JUDGE, WORKER), beat)
        with anyio.fail_after(HANGS_S):
            assert (await anext(run.heartbeats())).message == beat


async def test_the_streams_say_how_many_shards_there_are(tmp_path: Path) -> None:
    names = Subjects(RunName("wide"), 4)
    config = BusConfig(run=names.run, num_shards=4)
    async with (
        nats_server(tmp_path / "server", [config]) as address,
        connect_bus(address, names, config, name="test") as bus,
    ):
        await create_topology(bus, streams(names, config), shared_queues(names, config, ()))
        here = tmp_path / "server" / "keys" / "wide"
        async with connect(url=address.url, run="wide", keys=here) as run:
            assert run.subjects == names


async def test_what_is_not_there_is_said_with_what_to_write(bus: JetStreamBus, tmp_path: Path) -> None:
    async def refused(**arguments: object) -> str:
        with pytest.raises(ConfigurationError) as refusal:
            async with connect(**arguments):  # type: ignore[arg-type]
                pass
        return str(refusal.value)

    here, nowhere = url(tmp_path), tmp_path / "nowhere"
    assert "say which run" in await refused()
    assert "say which run" in await refused(url=here)
    assert "holds no run: give the folder" in await refused(folder=nowhere)
    assert "no account for the run other" in await refused(folder=tmp_path, run="other")
    assert "write the name of the run that the key is for" in await refused(url=here, run="other", keys=keys(tmp_path))
    assert "consumer.seed cannot be read" in await refused(url=here, run=RUN, keys=nowhere)
    assert "write one of admin" in await refused(folder=tmp_path, role="reader")
    assert "not encrypted" in await refused(url="nats://10.0.0.1:4222", run=RUN, keys=keys(tmp_path))
    assert "holds no run 'other'" in await refused(url=here, run="other", keys=keys(tmp_path), role="admin")


async def test_a_reader_outlives_a_restart_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the server is away on a busy machine."""
    monkeypatch.setattr("bus.jetstream.bus._LIMITS", HANGS_S)

    async def serve(until: anyio.Event, ended: anyio.Event, *, task_status: TaskStatus[JetStreamBus]) -> None:
        async with running_run(tmp_path) as bus:
            task_status.started(bus)
            await until.wait()
        ended.set()

    async with anyio.create_task_group() as group:
        until, ended = anyio.Event(), anyio.Event()
        await play(await group.start(serve, until, ended), task("before"))
        async with connect(tmp_path) as run, run.trajectories(durable="mine") as items:
            assert (await anext(items)).message.episode == task("before").episode
            until.set()
            await ended.wait()
            until = anyio.Event()
            await play(await group.start(serve, until, ended), task("after"))
            with anyio.fail_after(HANGS_S):
                assert (await anext(items)).message.episode == task("after").episode
        async with connect(tmp_path) as run:
            left = [item.message.episode async for item in run.trajectories(durable="mine", follow=False)]
        assert left == [task("after").episode]
        until.set()


async def test_a_run_that_has_ended_is_said_so_or_served(tmp_path: Path) -> None:
    async with running_run(tmp_path) as bus:
        await play(bus, task("a"))
        async with connect(tmp_path, serve=True) as run, run.trajectories() as items:
            await anext(items)
            await play(bus, task("b"))  # up: there is more to come
            with anyio.fail_after(HANGS_S):
                assert (await anext(items)).seq == 2
    with pytest.raises(ConfigurationError, match=r"the run has ended, or has not begun.*serve=True"):
        async with connect(tmp_path):
            pass
    async with connect(tmp_path, serve=True) as run:
        assert [item.seq async for item in run.trajectories(durable="mine")] == [1, 2]
    async with connect(tmp_path, serve=True) as run:
        assert [item.seq async for item in run.trajectories(durable="mine")] == []


async def test_a_run_s_server_that_comes_back_while_somebody_reads_waits_until_he_has_left(tmp_path: Path) -> None:
    async with running_run(tmp_path) as bus:
        await play(bus, task("a"))
    async with AsyncExitStack() as stack:
        async with connect(tmp_path, serve=True) as run:
            command = role_command("server", "--run-dir", str(tmp_path))
            server = await start_process(command, env=millrace_environment(), stderr=subprocess.PIPE)
            stack.push_async_callback(server.aclose)
            assert server.stderr is not None
            said = b""
            with anyio.fail_after(HANGS_S):
                while b"server_awaits_its_turn" not in said:
                    said += await server.stderr.receive()
            assert [item.seq async for item in run.trajectories()] == [1]

        async def follows() -> bool:
            try:
                async with connect(tmp_path) as run:
                    return [item.seq async for item in run.trajectories(follow=False)] == [1]
            except (BusUnavailable, ConfigurationError):
                return False

        await until(follows)
        server.terminate()
        with anyio.fail_after(HANGS_S):
            assert await server.wait() == 0


async def test_a_server_elsewhere_that_does_not_answer_is_said_so(bus: JetStreamBus, tmp_path: Path) -> None:
    with closed_port() as port, pytest.raises(BusUnavailable, match="no NATS server answers"):
        async with connect(url=f"nats://127.0.0.1:{port}", run=RUN, keys=keys(tmp_path)):
            pass


SCRIPT = """
import sys

from bus import connect, consume


async def main(folder: str) -> None:
    async with connect(folder) as run:
        async for item in run.trajectories():
            print(item.seq, flush=True)


consume(main, sys.argv[1])
"""


def script(run_dir: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(run_dir)],
        env=millrace_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def test_ctrl_c_ends_a_script_without_a_word(bus: JetStreamBus, tmp_path: Path) -> None:
    await play(bus, task("a"))
    with script(tmp_path) as process:
        assert process.stdout is not None
        assert await anyio.to_thread.run_sync(process.stdout.readline) == "1\n"
        process.send_signal(signal.SIGINT)
        output = await anyio.to_thread.run_sync(partial(process.communicate, timeout=HANGS_S))
    assert (process.returncode, *output) == (130, "", "")


async def test_a_script_is_told_a_mistake_in_a_sentence(tmp_path: Path) -> None:
    with script(tmp_path / "nowhere") as process:
        output = await anyio.to_thread.run_sync(partial(process.communicate, timeout=HANGS_S))
    assert process.returncode == 78
    assert output == (
        "",
        f"{tmp_path / 'nowhere'} holds no run: give the folder of a run that was created, or url=, run= and keys=\n",
    )


def test_importing_the_bus_loads_no_client() -> None:
    program = "import bus, sys; print(bus.NEW.value, 'nats' in sys.modules, 'yaml' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=millrace_environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["new", "False", "False"]
