"""A training job on several nodes: one generation after the other, in which all ranks run or none."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import anyio
import psutil
import pytest

from bus.background import background
from bus.memory import MemoryBus
from bus.ports import Expect, Record
from bus.server.ports import held_port
from bus.subjects import Subjects
from ops.launch import job, job_membership
from ops.launch.job import Interface, Job, run_job
from ops.launch.job_membership import JobMembership
from ops.launch.ranks import LocalRanks
from ops.processes.service import DRAIN_SIGNAL
from schemas.errors import BusUnavailable, ConfigurationError
from schemas.ids import RunName
from schemas.messages import AnyMessage, JobNode, JobState
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio

SUBJECTS = Subjects(RunName("r"))
JOB = Job(nodes=("a", "b"), num_ranks=(2, 1))
HERE = Interface(name="lo", address="127.0.0.1")
_NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "GLOO_SOCKET_IFNAME", "MASTER_PORT")
_RANK = f"""
import os, signal, time
from pathlib import Path
folder, names = Path(os.environ["FOLDER"]), {_NAMES!r}
place = [os.environ[name] for name in names]
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
writing = folder / f"writing-{{place[-1]}}-{{place[0]}}"
writing.write_text(" ".join(place))
writing.rename(folder / f"{{place[-1]}}-{{place[0]}}")
end = folder / f"end-{{place[0]}}"
while not end.exists():
    time.sleep(0.01)
code = int(end.read_text() or "0")
end.unlink()
raise SystemExit(code)
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_membership, "_BEAT_S", 0.05)


@pytest.fixture(autouse=True)
def new_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generations are told apart by their ports, and the system may give one twice."""
    drawn = set[int]()

    @contextmanager
    def new(address: str) -> Iterator[int]:
        with ExitStack() as stack:
            while (port := stack.enter_context(held_port(address))) in drawn:
                pass
            drawn.add(port)
            yield port

    monkeypatch.setattr(job, "held_port", new)


class Server(MemoryBus):
    """Can be away."""

    away = False

    async def append(self, stream: str, subject: str, message: AnyMessage, *, expect: Expect | None = None) -> int:
        self._reach()
        return await super().append(stream, subject, message, expect=expect)

    async def history(self, stream: str, subject_filter: str) -> Sequence[Record]:
        self._reach()
        return await super().history(stream, subject_filter)

    def _reach(self) -> None:
        if self.away:
            raise BusUnavailable("nobody answers")


class World:
    """Two nodes on one machine."""

    def __init__(self, folder: Path) -> None:
        self.bus = Server(SUBJECTS)
        self.folder = folder
        self.codes: dict[str, int] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}

    async def node(self, name: str) -> None:
        command = ["env", f"FOLDER={self.folder}", sys.executable, "-I", "-S", "-c", _RANK]
        with anyio.CancelScope() as self._scopes[name]:
            self.codes[name] = await run_job(self.bus, SUBJECTS, JOB, name, command, HERE)

    def stop(self, name: str) -> None:
        self._scopes[name].cancel()

    def end(self, rank: int, code: int = 0) -> None:
        (self.folder / f"writing-{rank}").write_text(str(code))
        (self.folder / f"writing-{rank}").rename(self.folder / f"end-{rank}")

    def begun(self) -> dict[str, list[list[str]]]:
        """By port: the places of the ranks that were begun to meet there."""
        found: dict[str, list[list[str]]] = {}
        for file in sorted(self.folder.glob("[0-9]*-*")):
            with suppress(FileNotFoundError):
                found.setdefault(file.name.partition("-")[0], []).append(file.read_text().split())
        return found

    async def generations(self, number: int) -> list[list[list[str]]]:
        """Returns when so many have all of their ranks."""
        await eventually(lambda: sum(len(ranks) == 3 for ranks in self.begun().values()) >= number)
        return [ranks for ranks in self.begun().values() if len(ranks) == 3]

    async def heard(self, name: str, number: int) -> None:
        """Returns when the node has spoken so many more times."""
        async with self.bus.tail(SUBJECTS.heartbeats, SUBJECTS.job_node(name), only_new=True) as records:
            with anyio.fail_after(HANGS_S):
                for _ in range(number):
                    await anext(records)

    async def state(self, name: str) -> JobNode | None:
        record = await self.bus.last(SUBJECTS.heartbeats, SUBJECTS.job_node(name))
        return record.message if record is not None and isinstance(record.message, JobNode) else None


async def eventually(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(HANGS_S):
        while not holds():  # noqa: ASYNC110 - nothing announces it
            await anyio.sleep(0.02)


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[tuple[World, Callable[[str], object]]]:
    made = World(folder)
    async with anyio.create_task_group() as group:
        yield made, lambda name: group.start_soon(made.node, name)
        group.cancel_scope.cancel()


async def test_all_ranks_meet_at_the_first_node_and_end_with_rank_0(tmp_path: Path) -> None:
    async with world(tmp_path) as (made, start):
        start("b")
        start("a")
        (places,) = await made.generations(1)
        assert [place[:-1] for place in sorted(places)] == [
            ["0", "0", "3", "127.0.0.1", "lo"],
            ["1", "1", "3", "127.0.0.1", "lo"],
            ["2", "0", "3", "127.0.0.1", "lo"],
        ]
        for rank in range(3):
            made.end(rank)
        await eventually(lambda: made.codes == {"a": 0, "b": 0})


async def test_a_node_whose_ranks_have_ended_waits_for_rank_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long: it may still write the last checkpoint."""
    async with world(tmp_path) as (made, start):
        start("b")
        start("a")
        await made.generations(1)
        with monkeypatch.context() as patch:
            patch.setattr(job, "_FOLLOW_S", 0.0)
            made.end(2)
            await eventually(lambda: len(psutil.Process().children()) == 2)
            await made.heard("b", 10)
        assert made.codes == {}
        for rank in (0, 1):
            made.end(rank)
        await eventually(lambda: made.codes == {"a": 0, "b": 0})
        assert len(made.begun()) == 1


async def test_a_rank_that_fails_ends_them_all_and_the_next_generation_begins_when_its_node_is_back(tmp_path: Path) -> None:
    async with world(tmp_path) as (made, start):
        start("a")
        start("b")
        await made.generations(1)
        made.end(2, code=3)
        await eventually(lambda: made.codes == {"b": 3})
        start("b")
        first, second = await made.generations(2)
        assert first[0][-1] != second[0][-1], "they meet elsewhere"
        word = await made.state("a")
        assert word is not None
        assert (word.state, word.generation) == (JobState.RUNNING, 2)


async def test_a_node_that_leaves_ends_the_generation_and_one_that_fails_for_good_the_job(tmp_path: Path) -> None:
    async with world(tmp_path) as (made, start):
        start("a")
        start("b")
        await made.generations(1)
        made.stop("a")
        await eventually_is(made, "b", JobState.READY)
        start("a")
        await made.generations(2)
        made.end(0, code=78)
        await eventually(lambda: made.codes == {"a": 78, "b": 78})


async def test_nodes_that_all_came_anew_begin_at_once(tmp_path: Path) -> None:
    """No generation is named twice, whoever remembers the last one."""
    async with world(tmp_path) as (made, start):
        start("a")
        start("b")
        await made.generations(1)
        made.stop("a")
        made.stop("b")
        for name in ("a", "b"):
            await eventually_is(made, name, JobState.LEFT)
        start("b")
        await eventually_is(made, "b", JobState.READY)
        start("a")
        await made.generations(2)
        word = await made.state("a")
        assert word is not None
        assert word.generation == 2


async def eventually_is(made: World, name: str, state: JobState) -> None:
    with anyio.fail_after(HANGS_S):
        while (word := await made.state(name)) is None or word.state is not state:  # noqa: ASYNC110
            await anyio.sleep(0.02)


@pytest.mark.parametrize(("name", "other", "num_ranks"), [("a", "b", 2), ("b", "a", 1)])
async def test_a_node_that_was_told_to_leave_takes_no_part_in_another_generation(
    name: str, other: str, num_ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, tell = anyio.Event(), LocalRanks.tell

    def telling(self: LocalRanks, number: signal.Signals) -> None:
        tell(self, number)
        told.set()

    monkeypatch.setattr(LocalRanks, "tell", telling)
    async with world(tmp_path) as (made, start):
        peer = JobMembership(made.bus, SUBJECTS, other)
        await peer.begin()
        async with background(peer.run):
            await peer.say(state=JobState.READY, address="")
            start(name)
            await eventually_is(made, name, JobState.RUNNING if name == JOB.nodes[0] else JobState.READY)
            await peer.say(state=JobState.RUNNING, generation=1, address="127.0.0.1:1")
            await eventually(lambda: sum(map(len, made.begun().values())) == num_ranks)
            os.kill(os.getpid(), DRAIN_SIGNAL)
            await told.wait()
            await peer.leave()  # it crashed while it drained
            await eventually(lambda: made.codes == {name: 0})


async def test_a_node_that_is_no_longer_heard_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def killed(_: JobMembership) -> None:
        """Nobody hears a last word."""

    monkeypatch.setattr(JobMembership, "leave", killed)
    async with world(tmp_path) as (made, start):
        start("a")
        start("b")
        await made.generations(1)
        made.stop("b")
        await eventually_is(made, "a", JobState.READY)
        start("b")
        await made.generations(2)


async def test_while_the_server_is_away_nobody_is_lost(tmp_path: Path) -> None:
    async with world(tmp_path) as (made, start):
        start("a")
        start("b")
        await made.generations(1)
        made.bus.away = True
        await anyio.sleep(30 * 0.05)
        made.bus.away = False
        await anyio.sleep(5 * 0.05)
        for rank in (2, 1, 0):
            made.end(rank)
        await eventually(lambda: made.codes == {"a": 0, "b": 0})
        assert len(made.begun()) == 1


def test_a_node_has_one_address_in_the_ranks_network() -> None:
    assert Interface.within("127.0.0.0/8").address.startswith("127.")
    with pytest.raises(ConfigurationError, match=r"trainer_network is 203\.0\.113\.0/24, .* one address: it has none"):
        Interface.within("203.0.113.0/24")
