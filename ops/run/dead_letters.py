"""Dead letters: what no worker could handle, read from ADVISORIES and put back on its queue.

A letter is what a worker wrote when it rejected a message. The server writes a notice of its own for every message that was
terminated or delivered too often: beside a letter it adds nothing; alone it stands for a letter that was never written.
"""

import re
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import msgspec

from bus.codec import decode
from bus.ports import Bus, StoredBytes
from bus.skipping import readable
from bus.subjects import Subjects, matches
from schemas.errors import ConfigurationError, MessageCorrupt, StreamFull
from schemas.messages import AnyMessage, DeadLetter, LetterResent

_PART = r"(\.[A-Za-z0-9_-]+)"
"""Of a subject, behind another."""


class _Notice(msgspec.Struct, frozen=True):
    """What the server says of a delivery that it gave up, in JSON."""

    stream: str
    consumer: str
    stream_seq: int
    type: str = ""
    deliveries: int = 0
    reason: str = ""

    @property
    def why(self) -> str:
        kind = "terminated by its worker" if self.type.endswith("terminated") else "not acknowledged"
        return f"{kind} in {self.deliveries} deliveries" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One message that will not be delivered again."""

    number: int
    """Sequence on ADVISORIES: what people call it by."""
    time: datetime
    stream: str
    seq: int
    """Of the message on `stream`."""
    consumer: str
    reason: str
    subject: str = ""
    """Empty when only the server's notice is left."""
    worker: str = ""
    data: bytes = field(default=b"", repr=False)
    is_queued: bool = False
    """The message still stands in its queue: nobody terminated it."""
    resent_at: datetime | None = None

    @property
    def message(self) -> AnyMessage | None:
        """None for bytes that this version cannot read."""
        try:
            return decode(self.data)
        except MessageCorrupt:
            return None

    @property
    def kind(self) -> str:
        message = self.message
        return type(message).__name__ if message is not None else "unreadable" if self.data else "gone"


async def read_letters(bus: Bus, subjects: Subjects) -> list[Letter]:
    """Every letter that is kept and can be read, oldest first."""
    letters: list[Letter] = []
    resent: dict[int, float] = {}
    notices: list[tuple[StoredBytes, _Notice]] = []
    async for stored in _records(bus, subjects.advisories):
        if not matches(subjects.everything(), stored.subject):
            notices.append((stored, msgspec.json.decode(stored.data, type=_Notice)))
        elif record := readable(stored):
            match record.message:
                case DeadLetter() as letter:
                    letters.append(_letter(stored, letter))
                case LetterResent() as mark:
                    resent[mark.letter_seq] = mark.at
    known = {(letter.stream, letter.seq) for letter in letters}
    for stored, notice in notices:
        if (notice.stream, notice.stream_seq) not in known:
            known.add((notice.stream, notice.stream_seq))
            letters.append(await _of_notice(bus, stored, notice))
    found = sorted(letters, key=lambda letter: letter.number)
    return [replace(letter, resent_at=_moment(resent.get(letter.number))) for letter in found]


async def resend(bus: Bus, subjects: Subjects, letter: Letter, *, again: bool = False) -> int:
    """Puts the original bytes back on their queue, then records it; returns the sequence of the copy.

    Raises:
        ConfigurationError: it was sent again before, or cannot be; says what to do instead.
    """
    if why := not_resendable(subjects, letter):
        raise ConfigurationError(f"letter {letter.number} cannot be sent again: {why}")
    if letter.resent_at is not None and not again:
        raise ConfigurationError(f"letter {letter.number} was sent again at {letter.resent_at:%Y-%m-%d %H:%M:%S}: add --again")
    try:
        seq = await bus.append_bytes(letter.stream, letter.subject, letter.data)
    except StreamFull as error:
        raise ConfigurationError(
            f"letter {letter.number}: {letter.stream} has no room or holds a copy already ({error})"
        ) from error
    mark = LetterResent(letter_seq=letter.number, stream=letter.stream, seq=seq, at=time.time())
    await bus.append(subjects.advisories, subjects.resent(letter.number), mark)
    return seq


def not_resendable(subjects: Subjects, letter: Letter) -> str | None:
    """Why a letter cannot be sent again, and what can be done; None: it can."""
    if letter.stream == subjects.trajectories:
        return (
            f"{letter.stream} is a log, not a queue: its record {letter.seq} is there for every reader, and a copy would "
            "count the episode twice. A judge of another rubric reads the whole log, and `millrace replay` has it judged again"
        )
    if letter.is_queued:
        return f"it was never taken off its queue: {letter.stream} still holds it as record {letter.seq}"
    if not letter.data:
        return "only the server's notice of it is left, without the message"
    queued = {subjects.tasks: rf"task{_PART}{{2}}", subjects.steps: rf"step{_PART}+"}.get(letter.stream)
    if queued is None:
        return f"{letter.stream} is no queue of this run"
    # What a letter says is its writer's word, and it would be published with the administrator's key.
    if not re.fullmatch(rf"{subjects.run}\.{queued}", letter.subject):
        return f"its subject is none of {letter.stream}: no worker wrote this letter"
    return None


async def _records(bus: Bus, stream: str) -> AsyncIterator[StoredBytes]:
    after_seq = 0
    while page := await bus.read_bytes(stream, ">", after_seq=after_seq):
        for stored in page:
            yield stored
        after_seq = page[-1].seq


def _letter(stored: StoredBytes, letter: DeadLetter) -> Letter:
    return Letter(
        number=stored.seq,
        time=_moment(stored.time_s) or datetime.now(UTC),
        stream=letter.stream,
        seq=letter.seq,
        consumer=letter.consumer,
        reason=letter.reason,
        subject=letter.subject,
        worker=letter.worker,
        data=letter.data,
    )


async def _of_notice(bus: Bus, stored: StoredBytes, notice: _Notice) -> Letter:
    page = await bus.read_bytes(notice.stream, ">", after_seq=notice.stream_seq - 1)
    kept = next((record for record in page if record.seq == notice.stream_seq), None)
    return Letter(
        number=stored.seq,
        time=_moment(stored.time_s) or datetime.now(UTC),
        stream=notice.stream,
        seq=notice.stream_seq,
        consumer=notice.consumer,
        reason=notice.why,
        subject=kept.subject if kept else "",
        data=kept.data if kept else b"",
        is_queued=kept is not None,
    )


def _moment(time_s: float | None) -> datetime | None:
    return None if time_s is None else datetime.fromtimestamp(time_s, UTC)


def numbered(letters: Iterable[Letter], number: int) -> Letter:
    """Raises `ConfigurationError` when there is none with this number."""
    for letter in letters:
        if letter.number == number:
            return letter
    raise ConfigurationError(f"there is no letter {number}: `millrace dead-letters list` shows those there are")
