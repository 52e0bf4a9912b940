"""The record of what a judge's models answered: CALLS, where every answer stands once, under its question and its number.

Invariant: answers to one question are numbered from 0 without a gap, and who appends a number second goes by the first.
"""

from dataclasses import dataclass
from hashlib import sha256

import anyio
import msgspec
import structlog

from bus.creation import create
from bus.ports import Bus, Record
from bus.subjects import Subjects
from judges.endpoint.port import Question
from schemas.errors import BusUnavailable
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import JudgeCall

_log = structlog.get_logger()
_LOOKS_S = (0.0, 0.05, 0.2, 1.0)
"""Pauses before each look for a record that is known to be there: a replica may lag behind."""
_DIGEST_DIGITS = 32
_json = msgspec.json.Encoder(order="deterministic")


def digest_of(model: str, question: Question, vote: int) -> str:
    """Names everything that was asked, as one subject token: equal exactly when nothing differs."""
    content = [
        part if isinstance(part, str) else [part.media_type, sha256(part.data).hexdigest()] for part in question.content
    ]
    asked = [model, question.system, content, question.schema_name, question.schema, vote]
    return sha256(_json.encode(asked)).hexdigest()[:_DIGEST_DIGITS]


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer as it stands on CALLS."""

    call: JudgeCall
    seq: int
    is_own: bool
    """False: another worker had its answer first."""


class Journal:
    """The answers that one rubric had."""

    def __init__(self, bus: Bus, subjects: Subjects, *, rubric: str, worker: WorkerId) -> None:
        self.rubric = rubric
        self.worker = worker
        self._bus = bus
        self._subjects = subjects

    async def about(self, episode: EpisodeId) -> dict[str, list[JudgeCall]]:
        """What stands about an episode, whoever asked: by question, the answers in order. One request."""
        records = await self._bus.history(self._subjects.calls, self._subjects.calls_of(self.rubric, episode))
        calls = [record.message for record in records if isinstance(record.message, JudgeCall)]
        found: dict[str, list[JudgeCall]] = {}
        for call in sorted(calls, key=lambda call: call.answer):
            found.setdefault(call.question, []).append(call)
        return found

    async def record(self, call: JudgeCall) -> Stored:
        """Appends an answer and returns what stands under its number: this one, or another worker's that came first.

        Raises:
            BusError: it could not be stored.
        """
        subject = self._subjects.call(call.rubric, call.episode, call.question, call.answer)
        seq = await create(self._bus, self._subjects.calls, subject, call)
        if seq is None:
            record = await self._standing(subject)
            assert isinstance(record.message, JudgeCall), subject
            _log.info("answered_by_another", episode=call.episode, stage=call.stage, judge=record.message.judge)
            return Stored(record.message, record.seq, is_own=False)
        return Stored(call, seq, is_own=True)

    async def _standing(self, subject: str) -> Record:
        for pause_s in _LOOKS_S:
            await anyio.sleep(pause_s)
            record = await self._bus.last(self._subjects.calls, subject)
            if record is not None:
                return record
        raise BusUnavailable(f"{subject} is taken, and what stands there cannot be seen yet")
