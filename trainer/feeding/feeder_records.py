"""The feeder's own records on FEEDING, which do not age: read by whoever takes over, written before anything is begun.

Invariant: every write is a compare-and-set behind the writer's last one, and whoever takes over writes first. So a feeder that
has lost its lease without knowing it begins nothing: its next write is refused. Where a server that lost power has lost the
latest writes, the leading feeder goes on behind what was stored before them.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

import anyio
import msgspec

from bus.ports import Bus, Expect, Record
from bus.subjects import Subjects
from schemas.errors import ChainConflict
from schemas.messages import FeederMemory, TaskResults
from trainer.retrying import until_available

_LOOK_AGAIN_S = 0.1
"""What is read may come from a replica that lags."""


@dataclass
class FeederRecords:
    """Of one feeder, while it leads."""

    bus: Bus
    subjects: Subjects
    holder: str = field(default_factory=lambda: secrets.token_hex(8))
    _seq: int = 0
    _claimed_behind_s: float = 0.0
    """When what our claim followed was stored, in unix seconds; 0: there was nothing."""

    async def claim(self) -> FeederMemory | None:
        """What the feeder before knew, which from now on writes nothing more; None: the run has never been fed."""
        while True:
            record = await self._newest()
            known = record.message if record is not None and isinstance(record.message, FeederMemory) else None
            self._seq, self._claimed_behind_s = (record.seq, record.time_s) if record is not None else (0, 0.0)
            ours = msgspec.structs.replace(known or FeederMemory(holder=""), holder=self.holder)
            try:
                self._seq = await until_available(partial(self._append, ours))
            except ChainConflict:
                # Somebody else's newer one, or ours, written by an attempt whose answer was lost.
                await anyio.sleep(_LOOK_AGAIN_S)
                continue
            return known

    async def write(self, memory: FeederMemory) -> bool:
        """False: another feeder leads."""
        while True:
            try:
                self._seq = await until_available(partial(self._append, memory))
            except ChainConflict:
                record = await self._newest_at_leader()
                if record is not None and not self._is_own(record):
                    return False
                self._seq = record.seq if record is not None else 0
                if record is not None and record.message == memory:
                    return True
                await anyio.sleep(_LOOK_AGAIN_S)
            else:
                return True

    async def read_results(self) -> list[TaskResults]:
        records = await until_available(
            lambda: self.bus.history(self.subjects.feeding, self.subjects.everything("feeding", "results"))
        )
        return [record.message for record in records if isinstance(record.message, TaskResults)]

    async def write_results(self, parts: Iterable[TaskResults]) -> None:
        for part in parts:
            await until_available(partial(self.bus.append, self.subjects.feeding, self.subjects.task_results(part.part), part))

    async def _newest(self) -> Record | None:
        return await until_available(partial(self.bus.last, self.subjects.feeding, self.subjects.feeder_memory))

    async def _newest_at_leader(self) -> Record | None:
        return await until_available(partial(self.bus.confirmed_last, self.subjects.feeding, self.subjects.feeder_memory))

    def _is_own(self, record: Record) -> bool:
        """Ours, or from before our claim: what a lost write of ours stood behind."""
        is_ours = isinstance(record.message, FeederMemory) and record.message.holder == self.holder
        return is_ours or (record.seq < self._seq and record.time_s <= self._claimed_behind_s)

    async def _append(self, memory: FeederMemory) -> int:
        expect = Expect(self.subjects.feeder_memory, self._seq)
        return await self.bus.append(self.subjects.feeding, self.subjects.feeder_memory, memory, expect=expect)
