"""Takes over what the feeder before knew, and writes down what is known before anything is begun."""

from collections.abc import Sequence
from functools import partial

import anyio
import msgspec

from bus.bulkhead import Bulkhead
from bus.lineage import Lineage
from bus.ports import Bus, Record
from bus.stored import page_behind
from bus.subjects import Subjects
from schemas.messages import Checkpoint, FeederMemory, Judgement, Split, Task
from trainer.feeding.feeder_records import FeederRecords
from trainer.feeding.feeder_state import FeederState
from trainer.feeding.training_plan import TrainingPlan
from trainer.retrying import until_available

_RESULTS_S = 60.0
"""After which results are written down, where they decide what is played: they are larger than all the rest."""
_AGAIN_S = 5.0
"""After which what has become known is written down, though nothing is admitted."""


class Recollection:
    """Of one feeder, while it leads."""

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        plan: TrainingPlan,
        state: FeederState,
        sources: Sequence[tuple[str, str]],
        bulkhead: Bulkhead,
        lineage: Lineage,
    ) -> None:
        """`sources`: streams that the state is folded from, each with a filter."""
        self._bus = bus
        self._subjects = subjects
        self._plan = plan
        self._state = state
        self._sources = sources
        self._bulkhead = bulkhead
        self._lineage = lineage
        self._records = FeederRecords(bus, subjects)
        self._intended: tuple[Sequence[Task], int, dict[str, int]] = ((), 0, {})
        self._written_at = self._results_at = float("-inf")
        self._results_seq = 0

    async def take_over(self) -> FeederMemory | None:
        """What the feeder before knew is known, as far as it stands in its records; None: there was none before."""
        memory = await self._records.claim()
        if memory is not None:
            self._state.restore(memory, judged=self._subjects.judged)
            self._plan.resume(memory.place)
            if self._plan.adapts:
                for part in await self._records.read_results():
                    self._state.attempts.restore(part)
                self._results_seq = memory.results_seq
        return memory

    async def catch_up(self) -> int:
        """Reads what came behind the memory, and what policies serve now; returns how many records that were."""
        num_records, state = 0, self._state
        for stream, subject in self._sources:
            known = min(state.sequences.get(stream, 0), await until_available(partial(self._bus.last_seq, stream)))
            through = min(known, self._results_seq) if stream == self._subjects.judged and self._plan.adapts else known
            while page := await until_available(partial(page_behind, self._bus, stream, subject, through)):
                for record in page.records:
                    await self._take(record, only_results=record.seq <= known)
                num_records, through = num_records + len(page.records), page.last_seq
            if self.lasts(stream):
                state.sequences[stream] = max(known, through)
        return num_records

    def lasts(self, stream: str) -> bool:
        """Whether it is remembered how far a stream was read."""
        return stream in (self._subjects.checkpoints, self._subjects.trajectories, self._subjects.judged)

    @property
    def is_due(self) -> bool:
        return anyio.current_time() - self._written_at > _AGAIN_S

    async def intend(self, tasks: Sequence[Task]) -> bool:
        """Writes down what is about to be admitted, so that whoever takes over can tell what became of each."""
        names = self._subjects
        streams = {names.episodes(names.shard(task.episode)) for task in tasks}
        chains = {stream: await until_available(partial(self._bus.last_seq, stream)) for stream in sorted(streams)}
        self._intended = (tasks, self._state.sequences.get(names.trajectories, 0), chains)
        return await self.write()

    async def write(self, *, finished: bool = False) -> bool:
        """False: another feeder leads. `finished`: the run is over."""
        await self._write_results()
        tasks, behind_seq, chains = self._intended
        memory = self._state.memory(
            holder=self._records.holder, place=self._plan.place, intended=tasks, intended_seq=behind_seq
        )
        memory = msgspec.structs.replace(memory, intended_chains=chains, results_seq=self._results_seq, finished=finished)
        is_written = await self._records.write(memory)
        self._written_at = anyio.current_time()
        return is_written

    async def _write_results(self) -> None:
        if self._plan.adapts and anyio.current_time() - self._results_at > _RESULTS_S:
            parts, through = self._state.attempts.changed(), self._state.attempts.last_seq
            await self._records.write_results(parts)
            self._results_at, self._results_seq = anyio.current_time(), through

    async def take(self, record: Record) -> None:
        """Takes in what has come."""
        await self._take(record, only_results=False)
        if self.lasts(record.stream):
            self._state.sequences[record.stream] = record.seq

    async def _take(self, record: Record, *, only_results: bool) -> None:
        message = record.message
        if isinstance(message, Checkpoint) and not self._lineage.takes(record):
            return
        try:
            if not only_results:
                self._state.apply(message, anyio.current_time(), record.seq, record.time_s)
            elif isinstance(message, Judgement) and message.split is Split.TRAIN:
                self._state.attempts.add(record.seq, message)
        except Exception as error:  # noqa: BLE001 - the boundary around one record: to end would only meet it again
            await self._bulkhead.left_out(error, f"{record.stream}/{record.seq}")
