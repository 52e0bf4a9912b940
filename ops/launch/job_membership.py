"""What the nodes of a training job tell each other over the bus, and who of them is heard.

Nobody's clock counts: a node is silent when this one was stored ten times and it was not once. So while the server is away
nobody falls silent.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import anyio
import msgspec
import structlog

from bus.ports import Bus
from bus.subjects import Subjects
from schemas.errors import BusError
from schemas.ids import WorkerId
from schemas.messages import JobNode, JobState

_BEAT_S = 1.0
_SILENT_BEATS = 10
_LAST_WORD_S = 3.0
_log = structlog.get_logger()


@dataclass
class _Heard:
    """One other node."""

    word: JobNode
    seq: int
    missed: float = math.inf
    """Beats of this node since it was stored last. What stood there when this one came may be of long ago."""


class JobMembership:
    """`begin` reads what was said; `run` then speaks and listens."""

    def __init__(self, bus: Bus, subjects: Subjects, node: str) -> None:
        self.word = JobNode(node=WorkerId(node), state=JobState.READY)
        """What this node says of itself."""
        self._bus = bus
        self._subjects = subjects
        self._node = node
        self._heard: dict[str, _Heard] = {}
        self._changed = anyio.Event()

    def of(self, node: str) -> JobNode | None:
        """What another node says; None: it is not heard."""
        heard = self._heard.get(node)
        if heard is None or heard.missed >= _SILENT_BEATS or heard.word.state is JobState.LEFT:
            return None
        return heard.word

    @property
    def newest_generation(self) -> int:
        """That anybody ever ran in, as far as is known."""
        return max([self.word.generation, *(heard.word.generation for heard in self._heard.values())])

    async def say(self, **changes: object) -> None:
        """From now on; told at once where the server can be reached."""
        self.word = msgspec.structs.replace(self.word, **changes)
        await self._beat()

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._changed.wait()

    async def begin(self) -> None:
        """Returns when it is known what was said before this node came; it has said nothing yet."""
        while True:
            try:
                records = await self._bus.history(self._subjects.heartbeats, self._subjects.job_node("*"))
                break
            except BusError as error:
                _log.warning("job_nodes_unread", error=str(error))
                await anyio.sleep(_BEAT_S)
        for record in records:
            if isinstance(record.message, JobNode):
                self._hear(record.message, record.seq)
                # No generation is named twice, also where all nodes came anew.
                generation = max(self.word.generation, record.message.generation)
                self.word = msgspec.structs.replace(self.word, generation=generation)

    async def run(self) -> None:
        """Speaks and listens until it is cancelled."""
        while True:
            await self._beat()
            await anyio.sleep(_BEAT_S)

    async def leave(self) -> None:
        """The last word, where anybody hears it."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(_LAST_WORD_S):
            await self.say(state=JobState.LEFT)

    async def _beat(self) -> None:
        try:
            await self._bus.append(self._subjects.heartbeats, self._subjects.job_node(self._node), self.word)
            records = await self._bus.history(self._subjects.heartbeats, self._subjects.job_node("*"))
        except BusError as error:
            _log.warning("job_word_unsent", error=str(error))
            return
        for record in records:
            if isinstance(record.message, JobNode):
                self._hear(record.message, record.seq)
        self._changed.set()
        self._changed = anyio.Event()

    def _hear(self, word: JobNode, seq: int) -> None:
        before = self._heard.get(word.node)
        if word.node == self._node:
            return
        if before is None:
            self._heard[word.node] = _Heard(word, seq)
        elif seq > before.seq:
            self._heard[word.node] = _Heard(word, seq, missed=0)
        else:
            before.missed += 1
