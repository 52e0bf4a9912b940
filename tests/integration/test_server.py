"""The embedded server: it starts, stops, is killed and comes back, and nobody loses or doubles anything over it."""

import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import msgspec
import psutil
import pytest
import structlog

from bus import server_binary
from bus.address import ServerAddress
from bus.backpressure import append_when_room
from bus.jetstream import JetStreamBus, connect, create_topology
from bus.jetstream.api import Response, StreamInfo, ask
from bus.jetstream.lease import Claim
from bus.ports import Expect, Inbox
from bus.server import ServerProcess, address_of, is_served, lock, nats_server, server_process
from bus.settlement import settle
from bus.topology import shared_queues, step_queue, streams, task_queue
from ops.processes.role_process import millrace_environment
from schemas.errors import BusUnavailable, ConfigurationError, NotPermitted, StreamFull
from schemas.ids import EpisodeId, PolicyVersion
from schemas.messages import Split, StepWake, Task
from tests.builders import WORKER, checkpoint, observation, task
from tests.contract.backends import CONFIG, QUEUES, SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.bus.leases import renewed_often
from tests.support.closed_port import closed_port
from tests.support.polling import until

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
NUM_KILLS = 2


class Tally:
    """A list that can be waited for."""

    def __init__(self) -> None:
        self.items: list[int] = []
        self._grown = anyio.Event()

    def add(self, item: int) -> None:
        self.items.append(item)
        self._grown.set()

    async def reaches(self, length: int) -> None:
        with anyio.fail_after(HANGS_S):
            while len(self.items) < length:
                self._grown = anyio.Event()
                await self._grown.wait()

    async def grows(self, by: int) -> None:
        await self.reaches(len(self.items) + by)


class Restarting:
    """A server that comes back, on its port and with its store, each time it is killed: what the supervisor does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = AsyncExitStack()
        self._server: ServerProcess | None = None

    async def start(self) -> ServerAddress:
        self._server = await self._stack.enter_async_context(server_process(self._folder))
        return self._server.address

    async def kill(self) -> None:
        assert self._server is not None
        os.kill(self._server.pid, signal.SIGKILL)
        assert "ended with status" in await self._server.wait_dead()
        await self.stop()
        await self.start()

    async def stop(self) -> None:
        await self._stack.aclose()


@asynccontextmanager
async def restarting(folder: Path) -> AsyncIterator[tuple[Restarting, JetStreamBus]]:
    server = Restarting(folder)
    try:
        address = await server.start()
        async with connect(address, SUBJECTS, replace(CONFIG, request_timeout_s=HANGS_S), name="test") as bus:
            await create_topology(bus, streams(SUBJECTS, CONFIG), QUEUES)
            yield server, bus
    finally:
        await server.stop()


async def append_in_order(bus: JetStreamBus, done: Tally, enough: anyio.Event) -> None:
    """A chain of appends, each behind the one before, until told to stop."""
    everything = SUBJECTS.everything("checkpoint")
    while not enough.is_set():
        seq = await bus.append(
            SUBJECTS.checkpoints,
            SUBJECTS.checkpoint(PolicyVersion(len(done.items))),
            checkpoint(len(done.items)),
            expect=Expect(everything, len(done.items)),
        )
        done.add(seq)
        await anyio.lowlevel.checkpoint()


async def test_appends_and_tails_go_on_through_kills(tmp_path: Path) -> None:
    async with restarting(tmp_path) as (server, bus):
        appended, seen, enough = Tally(), Tally(), anyio.Event()

        async def follow() -> None:
            async with bus.tail(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint")) as records:
                async for record in records:
                    seen.add(record.seq)

        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            async with anyio.create_task_group() as appending:
                appending.start_soon(append_in_order, bus, appended, enough)
                for _ in range(NUM_KILLS):
                    await seen.grows(200)
                    await server.kill()
                await seen.grows(200)
                enough.set()
            await seen.reaches(len(appended.items))
            group.cancel_scope.cancel()
        stored = await bus.history(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))
        assert appended.items == seen.items == [record.seq for record in stored] == list(range(1, len(stored) + 1))


async def test_work_goes_on_through_kills(tmp_path: Path) -> None:
    num_tasks = 300
    queue = task_queue(SUBJECTS, replace(CONFIG, task_ack_wait_s=60.0), Split.TRAIN)
    async with restarting(tmp_path) as (server, bus):
        await create_topology(bus, (), (queue,))
        handled, results, all_done = Tally(), set[str](), anyio.Event()

        async def feed() -> None:
            for index in range(num_tasks):
                queued = task(f"t{index}")
                await append_when_room(bus, SUBJECTS.tasks, SUBJECTS.task(Split.TRAIN, queued.episode), queued)

        async def serve(inbox: Inbox) -> None:
            async for delivery in inbox:
                async with settle(bus, delivery, WORKER):
                    assert isinstance(delivery.message, Task)
                    await anyio.sleep(0.01)
                    results.add(delivery.message.episode)
                    handled.add(delivery.seq)
                    if len(results) == num_tasks:
                        all_done.set()

        async with bus.work(queue, prefetch=0) as inbox, anyio.create_task_group() as group:
            group.start_soon(feed)
            for _ in range(4):
                group.start_soon(serve, inbox)
            for kill in range(NUM_KILLS):
                await handled.reaches((kill + 1) * num_tasks // 4)
                await server.kill()
            with anyio.fail_after(HANGS_S):
                await all_done.wait()
            group.cancel_scope.cancel()
        # A delivery whose acknowledgement was lost with the server comes again; that is all.
        assert len(handled.items) <= num_tasks + 4 * NUM_KILLS


async def test_large_records_are_stored_once(tmp_path: Path) -> None:
    of = task()
    async with restarting(tmp_path) as (server, bus), anyio.create_task_group() as group:
        started = anyio.Event()

        async def kill() -> None:
            await started.wait()
            await server.kill()

        group.start_soon(kill)
        for step in range(40):
            subject = SUBJECTS.chain_record(of.episode, 1, "obs", step)
            seq = await bus.append(
                SUBJECTS.episodes(0),
                subject,
                observation(of, step, data=os.urandom(400_000)),
                expect=Expect(SUBJECTS.chain(of.episode), step),
            )
            assert seq == step + 1
            if step == 10:
                started.set()


async def test_wake_ups_and_their_queues_outlive_the_server(tmp_path: Path) -> None:
    queue = step_queue(SUBJECTS, CONFIG, Split.TRAIN)
    async with restarting(tmp_path) as (server, bus), bus.work(queue, prefetch=0) as inbox:
        for name in ("before", "after"):
            episode = EpisodeId(name)
            wake = StepWake(episode=episode, attempt=1, step=0, observation_seq=1)
            await bus.append(SUBJECTS.steps, SUBJECTS.step_any(Split.TRAIN, episode), wake)
            await server.kill()
            with anyio.fail_after(HANGS_S):
                delivery = await anext(inbox)
            assert delivery.message == wake
            await delivery.ack()


async def test_a_queue_is_waited_for_until_the_administrator_creates_it(tmp_path: Path) -> None:
    queue, queued = task_queue(SUBJECTS, CONFIG, Split.TRAIN), task()
    received = anyio.Event()
    async with (
        nats_server(tmp_path) as address,
        connect(address, SUBJECTS, CONFIG, name="admin") as admin,
        connect(address, SUBJECTS, replace(CONFIG, request_timeout_s=HANGS_S), name="early") as early,
        anyio.create_task_group() as group,
    ):

        async def serve() -> None:
            async with early.work(queue, prefetch=0) as inbox:
                async for delivery in inbox:
                    await delivery.ack()
                    received.set()

        with structlog.testing.capture_logs() as logs:
            group.start_soon(serve)
            with anyio.fail_after(HANGS_S):
                while not any(log["event"] == "queue_awaited" for log in logs):  # noqa: ASYNC110 - a log has no event
                    await anyio.sleep(0.01)
                await create_topology(admin, streams(SUBJECTS, CONFIG), QUEUES)
                await admin.append(SUBJECTS.tasks, SUBJECTS.task(Split.TRAIN, queued.episode), queued)
                await received.wait()
        group.cancel_scope.cancel()
    assert [log["event"] for log in logs].count("queue_awaited") == 1


async def test_streams_are_upgraded_in_place(tmp_path: Path) -> None:
    tighter = replace(CONFIG, max_queued_tasks=1, episodes_max_gb=1.0, task_ack_wait_s=9.0)
    async with nats_server(tmp_path) as address, connect(address, SUBJECTS, CONFIG, name="admin") as bus:
        await create_topology(bus, streams(SUBJECTS, CONFIG), QUEUES)
        first, second = task("a"), task("b")
        await bus.append(SUBJECTS.tasks, SUBJECTS.task(Split.TRAIN, first.episode), first)
        with structlog.testing.capture_logs() as logs:
            await create_topology(bus, streams(SUBJECTS, CONFIG), QUEUES)
        assert {log["event"] for log in logs} == {"stream_unchanged", "queue_unchanged"}
        with structlog.testing.capture_logs() as logs:
            await create_topology(bus, streams(SUBJECTS, tighter), shared_queues(SUBJECTS, tighter, ("other_v1",)))
        changed = {(log["event"], log.get("queue", log["stream"])) for log in logs if not log["event"].endswith("_unchanged")}
        assert changed == {
            ("stream_changed", SUBJECTS.tasks),
            ("stream_changed", SUBJECTS.episodes(0)),
            ("queue_changed", "browsers_train"),
            ("queue_changed", "browsers_eval"),
            ("queue_created", "judges_other_v1"),
        }
        with pytest.raises(StreamFull):
            await bus.append(SUBJECTS.tasks, SUBJECTS.task(Split.TRAIN, second.episode), second)


async def test_a_tail_notices_a_stream_that_began_again(tmp_path: Path) -> None:
    everything = SUBJECTS.everything("checkpoint")
    async with restarting(tmp_path) as (server, bus), bus.tail(SUBJECTS.checkpoints, everything) as records:
        for version in range(3):
            await bus.append(SUBJECTS.checkpoints, SUBJECTS.checkpoint(PolicyVersion(version)), checkpoint(version))
            assert (await anext(records)).seq == version + 1
        await ask(bus._link, f"STREAM.DELETE.{SUBJECTS.checkpoints}", None, Response, timeout_s=HANGS_S)
        await create_topology(bus, streams(SUBJECTS, CONFIG), ())
        await bus.append(SUBJECTS.checkpoints, SUBJECTS.checkpoint(PolicyVersion(9)), checkpoint(9))
        await server.kill()
        with anyio.fail_after(HANGS_S):
            record = await anext(records)
    assert (record.seq, record.message) == (1, checkpoint(9))


async def test_a_tail_leaves_nothing_on_the_server(tmp_path: Path) -> None:
    async with restarting(tmp_path) as (_, bus), bus.tail(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint")) as records:
        await bus.append(SUBJECTS.checkpoints, SUBJECTS.checkpoint(PolicyVersion(0)), checkpoint(0))
        await anext(records)
        names = await ask(bus._link, f"CONSUMER.NAMES.{SUBJECTS.checkpoints}", None, StreamInfo, timeout_s=HANGS_S)
    assert names.total == 0


async def test_a_lease_survives_a_short_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ttl_s = renewed_often(monkeypatch)
    async with restarting(tmp_path) as (server, bus), bus.lease("feeder", ttl_s=ttl_s) as lease:

        async def watch() -> None:
            await lease.wait_lost()
            pytest.fail("lost")

        async def renewed() -> bool:
            return await bus.last_seq(SUBJECTS.leases) > claimed

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            await server.kill()
            claimed = await bus.last_seq(SUBJECTS.leases)
            await until(renewed)
            group.cancel_scope.cancel()


async def test_a_lease_passes_on_when_its_holder_falls_silent(tmp_path: Path) -> None:
    async with nats_server(tmp_path) as address, connect(address, SUBJECTS, CONFIG, name="standby") as standby:
        await create_topology(standby, streams(SUBJECTS, CONFIG), ())
        # The claim of a holder that was killed: written, never renewed, never released.
        claim = msgspec.json.encode(Claim(holder="killed", ttl_s=1.0, renewal=0))
        await standby.append_bytes(SUBJECTS.leases, SUBJECTS.lease("feeder"), claim)
        began = anyio.current_time()
        with anyio.fail_after(HANGS_S):
            async with standby.lease("feeder", ttl_s=1):
                assert anyio.current_time() - began >= 1.0


async def test_a_holder_that_does_not_hear_the_server_knows_its_lease_is_lost(tmp_path: Path) -> None:
    async with restarting(tmp_path) as (server, bus), bus.lease("feeder", ttl_s=1) as lease:
        await server.stop()
        with anyio.fail_after(HANGS_S):
            await lease.wait_lost()


async def test_port_and_key_survive_a_restart(tmp_path: Path) -> None:
    async with nats_server(tmp_path) as first:
        pass
    async with nats_server(tmp_path) as second:
        assert second == first == address_of(tmp_path)


async def test_a_second_server_in_one_folder_is_refused(tmp_path: Path) -> None:
    async with nats_server(tmp_path):
        with pytest.raises(ConfigurationError, match="running already"):
            async with nats_server(tmp_path):
                pass


async def test_the_run_s_own_server_waits_for_one_that_runs_for_a_reader_s_while(tmp_path: Path) -> None:
    ready = anyio.Event()

    async def serve() -> None:
        async with server_process(tmp_path, lasting=True):
            ready.set()
            await anyio.sleep_forever()

    async def waits() -> bool:
        return any(log["event"] == "server_awaits_its_turn" for log in logs)

    async def refused(*, lasting: bool) -> None:
        with pytest.raises(ConfigurationError, match="running already"):
            async with server_process(tmp_path, lasting=lasting):
                pytest.fail("one is there")

    with structlog.testing.capture_logs() as logs, anyio.fail_after(HANGS_S):
        async with anyio.create_task_group() as group:
            async with nats_server(tmp_path) as address:
                group.start_soon(serve)
                await until(waits)
                await refused(lasting=True)
                assert not ready.is_set()
            await ready.wait()
            await refused(lasting=True)
            await refused(lasting=False)
            async with connect(address, SUBJECTS, CONFIG, name="test"):
                group.cancel_scope.cancel()
    assert [log["event"] for log in logs].count("server_awaits_its_turn") == 1


async def test_a_reader_whose_server_was_killed_gets_the_run_s_own(tmp_path: Path) -> None:
    async with nats_server(tmp_path) as address, connect(address, SUBJECTS, CONFIG, name="reader") as bus:
        await create_topology(bus, streams(SUBJECTS, CONFIG), ())
        (server,) = (child for child in psutil.Process().children() if str(tmp_path / "nats.conf") in child.cmdline())
        server.kill()
        with anyio.fail_after(HANGS_S):
            async with server_process(tmp_path, lasting=True):
                assert await bus.last_seq(SUBJECTS.checkpoints) == 0


async def test_whoever_only_looks_whether_a_folder_is_served_keeps_nobody_from_serving_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as looking:

        async def rounds(*_: object, **__: object) -> AsyncIterator[int]:
            yield 0
            looking.close()
            yield 1

        looking.enter_context(lock._lock(tmp_path / "nats.lock"))
        monkeypatch.setattr(lock, "Tries", rounds)
        async with nats_server(tmp_path):
            assert is_served(tmp_path)
    assert not is_served(tmp_path)


async def test_a_taken_port_is_said_so(tmp_path: Path) -> None:
    async with nats_server(tmp_path / "a") as address:
        port = int(address.url.rpartition(":")[2])
        with pytest.raises(ConfigurationError, match=f"port {port} is taken"):
            async with nats_server(tmp_path / "b", port=port):
                pass


async def test_a_folder_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot write"):
        async with nats_server(tmp_path / "file"):
            pass


@pytest.mark.parametrize(("answer", "sentence"), [("v2.9.1", "too old"), (None, "there is no nats-server")])
async def test_a_missing_or_old_binary_is_said_so(
    answer: str | None, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    if answer is not None:
        binary = folder / "nats-server"
        binary.write_text(f"#!/bin/sh\necho nats-server: {answer}\n")
        binary.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(server_binary, "_WHEEL", "no-such-package")
    with pytest.raises(ConfigurationError, match=sentence):
        async with nats_server(tmp_path / "run"):
            pass


@pytest.mark.parametrize(
    ("ending", "sentence"),
    [("kill -9 $$", "ended by signal 9"), ("echo 'no more threads' >&2; exit 2", "ended with status 2: no more threads")],
)
async def test_a_binary_that_ends_before_it_says_its_version_is_asked_again(
    ending: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that is full for a moment is no old server."""
    binary, asked = tmp_path / "nats-server", tmp_path / "asked"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(server_binary, "_VERSION_PAUSE_S", 0.0)
    binary.write_text(f"#!/bin/sh\n{ending}\n")
    binary.chmod(0o755)
    with pytest.raises(BusUnavailable, match=sentence):
        await server_binary.find_binary()
    binary.write_text(f"#!/bin/sh\nif [ -e {asked} ]; then echo nats-server: v9.1.2; exit; fi\ntouch {asked}\n{ending}\n")
    assert (await server_binary.find_binary()).version == (9, 1, 2)


async def test_nobody_else_gets_in(tmp_path: Path) -> None:
    async with nats_server(tmp_path) as address:
        assert stat.S_IMODE((tmp_path / "nats.conf").stat().st_mode) == 0o600
        assert address.nkey_seed not in repr(address)
        with pytest.raises(NotPermitted, match="refuses the key"):
            async with connect(ServerAddress(address.url), SUBJECTS, CONFIG, name="stranger"):
                pass


async def test_no_server_is_said_so(tmp_path: Path) -> None:
    with closed_port() as port, pytest.raises(BusUnavailable, match="start the server role first"):
        async with connect(ServerAddress(f"nats://127.0.0.1:{port}"), SUBJECTS, CONFIG, name="early"):
            pass
    with pytest.raises(ConfigurationError, match="no NATS server has run"):
        address_of(tmp_path / "elsewhere")


async def orphan_of(spelled: str, cwd: Path) -> int:
    """Process id of a server whose parent was killed; the parent ran in `cwd` and named the folder so."""
    script = (
        "import anyio, sys; from pathlib import Path; from bus.server import server_process\n"
        "async def main():\n"
        "    async with server_process(Path(sys.argv[1])) as server:\n"
        "        print(server.pid, file=sys.stderr, flush=True)\n"
        "        await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    command, env = [sys.executable, "-c", script, spelled], millrace_environment()
    parent = await anyio.open_process(command, stdout=None, cwd=cwd, env=env)
    assert parent.stderr is not None
    with anyio.fail_after(HANGS_S):
        orphan = int(await parent.stderr.receive())
    parent.kill()
    await parent.wait()
    await parent.aclose()
    assert psutil.pid_exists(orphan)
    return orphan


@pytest.mark.parametrize("spelled", ["{folder}", "{name}", "link", "../{parent}/./{name}"])
async def test_a_server_whose_parent_was_killed_is_replaced_however_its_folder_was_spelled(
    spelled: str, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    orphan = await orphan_of(spelled.format(folder=folder, name=folder.name, parent=tmp_path.name), tmp_path)
    async with nats_server(folder) as address, connect(address, SUBJECTS, CONFIG, name="test"):
        assert not psutil.pid_exists(orphan)


async def test_a_server_of_another_folder_of_the_same_name_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As two clones have, in each of which a run is named from there."""
    for clone in ("a", "b"):
        (tmp_path / clone).mkdir()
    monkeypatch.chdir(tmp_path / "a")
    async with server_process(Path("runs/mine")) as first:
        monkeypatch.chdir(tmp_path / "b")
        async with server_process(Path("runs/mine")) as second:
            assert second.address.url != first.address.url
            assert first.process.returncode is None
            async with connect(first.address, SUBJECTS, CONFIG, name="test"):
                pass
    assert (tmp_path / "a" / "runs" / "mine" / "nats.json").is_file()


async def test_a_clean_restart_is_no_different_from_a_kill(tmp_path: Path) -> None:
    async with restarting(tmp_path) as (server, bus):
        await bus.append(SUBJECTS.checkpoints, SUBJECTS.checkpoint(PolicyVersion(0)), checkpoint(0))
        async with anyio.create_task_group() as group:
            await server.stop()
            group.start_soon(server.start)
            assert await bus.last_seq(SUBJECTS.checkpoints) == 1
