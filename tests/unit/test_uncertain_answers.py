"""An answer that was lost, and a server that lags: neither makes a writer give up its own record, nor a reader begin again."""

from typing import cast

import msgspec
import pytest
import structlog
from nats.aio.msg import Msg

from bus.codec import encode
from bus.jetstream.append import Appender
from bus.jetstream.calls import NoAnswer
from bus.jetstream.link import Link
from bus.jetstream.read import Reader
from bus.jetstream.retrying import RetryLimits
from bus.jetstream.streams import Streams
from bus.jetstream.tail import End, Tail
from bus.ports import Expect, StoredBytes
from bus.subjects import Subjects
from schemas.errors import ChainConflict
from schemas.ids import PolicyVersion
from tests.builders import RUN, checkpoint

pytestmark = [pytest.mark.anyio]
CONFLICT = msgspec.json.encode({"error": {"code": 400, "err_code": 10164, "description": "wrong last sequence"}})


class Refusing:
    """A link on which the first answer is lost, and every later one refuses."""

    def __init__(self) -> None:
        self.num_requests = 0

    async def is_up_within(self, timeout_s: float) -> bool:
        return True

    async def wait_up(self) -> None:
        return None

    async def request(self, subject: str, payload: bytes, headers: dict[str, str], *, timeout_s: float) -> Msg:
        self.num_requests += 1
        if self.num_requests == 1:
            raise NoAnswer("the leader was killed")
        return Msg(_client=cast("object", None), data=CONFLICT)  # type: ignore[arg-type]


class Lagging:
    """Reads of a replica: a record shows at the `shown_at`-th look, and the stream is said to end at these sequences."""

    def __init__(self, shown_at: int = 0, ends: tuple[int, ...] = ()) -> None:
        self.shown_at = shown_at
        self.ends = list(ends)
        self.num_looks = 0

    async def newest_on(self, stream: str, subject: str) -> StoredBytes | None:
        self.num_looks += 1
        return StoredBytes(stream, subject, 7, 0.0, b"ours") if self.num_looks >= self.shown_at else None

    async def last_seq(self, stream: str) -> int:
        return self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]

    async def page(self, stream: str, subject_filter: str, *, after_seq: int, since_s: float | None) -> list[StoredBytes]:
        return [StoredBytes(stream, "s", seq, 0.0, b"not a message") for seq in range(after_seq + 1, self.ends[-1] + 1)]


def appender(reader: Lagging) -> Appender:
    link = cast("Link", Refusing())
    return Appender(link, cast("Reader", reader), cast("Streams", None), RetryLimits(attempt_s=1.0, total_s=5.0))


async def test_our_own_record_is_looked_for_before_anybody_else_is_blamed() -> None:
    reader = Lagging(shown_at=4)
    assert await appender(reader).append_bytes("S", "s", b"ours", Expect("s", 6)) == 7
    assert reader.num_looks == 4


async def test_somebody_elses_record_is_a_conflict_all_the_same() -> None:
    with pytest.raises(ChainConflict):
        await appender(Lagging()).append_bytes("S", "s", b"another", Expect("s", 6))


@pytest.mark.parametrize(("ends", "lost"), [((5, 3, 4, 5), False), ((5, 3), True)])
async def test_a_leader_that_catches_up_is_not_a_stream_that_lost_its_end(ends: tuple[int, ...], lost: bool) -> None:
    """And of one that did, nothing is read again."""
    tail = Tail(cast("Link", Refusing()), cast("Reader", Lagging(ends=ends)), "S", "s", poll_s=0.01)
    await tail.open(after_seq=5, since_s=None, only_new=False)
    tail.lost()
    with structlog.testing.capture_logs() as entries:
        assert not await tail._turn_page()
    assert ("stream_lost_its_end" in [entry["event"] for entry in entries]) is lost


class Showing:
    """Pages of a replica that shows its one record at the third look."""

    def __init__(self) -> None:
        subject = Subjects(RUN).checkpoint(PolicyVersion(1))
        self.stored = StoredBytes("S", subject, 1, 0.0, encode(checkpoint(1)))
        self.num_looks = 0

    async def page(self, *_: object, after_seq: int, since_s: float | None) -> list[StoredBytes]:
        self.num_looks += 1
        return [self.stored] if self.num_looks >= 3 else []

    async def standing(self) -> StoredBytes:
        return self.stored


async def test_an_end_that_a_replica_does_not_show_yet_is_waited_for() -> None:
    reader = Showing()
    tail = Tail(cast("Link", Refusing()), cast("Reader", reader), "S", "s", poll_s=0.0, end=End(1, reader.standing))
    assert [record.seq async for record in tail] == [1]
