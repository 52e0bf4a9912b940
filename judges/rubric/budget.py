"""The run's budget of model calls: the sum over CALLS, of all rubrics and workers, under which every call waits for its turn.

Calls age out of CALLS. So what they came to is written, every minute that it has grown, where nothing ages.

Invariant: a worker's calls that are under way, and those that it has recorded and not yet read back, count as made. So the
run's limit is passed by no more than the calls which other workers have under way at that moment.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import anyio
import structlog

from bus.background import background
from bus.backlog import backlog
from bus.following import follow
from bus.ports import Bus, Record
from bus.presence import Status
from bus.subjects import Subjects
from schemas.errors import BusUnavailable, ToldToLeave
from schemas.judge_config import JudgeConfig
from schemas.messages import JudgeCall, JudgeSpending

_log = structlog.get_logger()
_SAY_S = 60.0


@dataclass
class Spending:
    """What the run's calls came to, as far as CALLS was read."""

    num_calls: int = 0
    cost: float = 0.0
    dearest: float = 0.0
    """The highest cost of one call: what is set aside for one that is under way."""

    @classmethod
    def of(cls, said: JudgeSpending) -> "Spending":
        return cls(said.num_calls, said.cost, said.dearest)

    def add(self, call: JudgeCall) -> None:
        self.num_calls += 1
        self.cost += call.cost
        self.dearest = max(self.dearest, call.cost)

    def allows_one_more(self, config: JudgeConfig, num_under_way: int) -> bool:
        """Before the first call it is not known what one costs: then they go one at a time."""
        if config.max_calls and self.num_calls + num_under_way >= config.max_calls:
            return False
        set_aside = self.dearest if self.num_calls else config.max_cost
        return not config.max_cost or self.cost + num_under_way * set_aside < config.max_cost

    def reached(self, config: JudgeConfig) -> str:
        """Which limit is reached and what to do, for a person; empty: none is."""
        if config.max_calls and self.num_calls >= config.max_calls:
            what, name = f"{self.num_calls:,} calls were made", f"judge_config.max_calls ({config.max_calls:,})"
        elif config.max_cost and self.cost >= config.max_cost:
            what, name = f"calls cost {self.cost:g}", f"judge_config.max_cost ({config.max_cost:g})"
        else:
            return ""
        return f"{what}: raise {name} and start the judges again; nothing is lost"


@dataclass
class Reservation:
    """One call that counts as made while it is under way."""

    seq: int = 0
    """Where its answer stands on CALLS; 0 when there was none."""


class Budget:
    """Use `open_budget`."""

    def __init__(self, config: JudgeConfig, status: Status) -> None:
        self.limits_cost = config.max_cost > 0
        self.limits_calls = config.max_calls > 0
        self._config = config
        self._status = status
        self._spending = Spending()
        self._num_under_way = 0
        self._unread = set[int]()
        """Sequences of own answers that are recorded and were not read back yet."""
        self._read_seq = 0
        self._changed = anyio.Event()

    @property
    def dearest(self) -> float:
        """The highest cost of one call of the run's."""
        return self._spending.dearest

    @asynccontextmanager
    async def call(self) -> AsyncIterator[Reservation]:
        """Waits until the run may make one more call, which the body then makes. May wait for ever: the run is paused.

        Raises:
            ToldToLeave: the run is paused, and the worker drains.
        """
        if not (self.limits_calls or self.limits_cost):
            yield Reservation()
            return
        await self._wait()
        reservation = Reservation()
        self._num_under_way += 1
        try:
            yield reservation
        finally:
            self._num_under_way -= 1
            if reservation.seq > self._read_seq:
                self._unread.add(reservation.seq)
            self._wake()

    async def _wait(self) -> None:
        while True:
            if self._spending.allows_one_more(self._config, self._num_under_way + len(self._unread)):
                return
            reached = self._spending.reached(self._config)
            if not reached:
                await self._changed.wait()
                continue
            self._pause(reached)
            await self._status.drain.unless(self._changed.wait)
            if self._status.drain.requested:
                raise ToldToLeave(reached)

    def _pause(self, reason: str) -> None:
        """For good: calls are never taken back, and limits are read when a worker starts."""
        if self._status.state != "paused":
            _log.warning("judging_paused", reason=reason)
            self._status.state, self._status.note = "paused", reason

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _count(self, record: Record) -> None:
        if isinstance(record.message, JudgeCall):
            self._spending.add(record.message)
        self._read_seq = record.seq
        self._unread = {seq for seq in self._unread if seq > record.seq}

    async def read_up(self, bus: Bus, subjects: Subjects) -> None:
        """Counts the calls that were made already."""
        record = await bus.last(subjects.feeding, subjects.spent)
        if record is not None and isinstance(record.message, JudgeSpending):
            self._spending = Spending.of(record.message)
            # A server that lost its power may have lost what came last.
            self._read_seq = min(record.message.calls_seq, await bus.last_seq(subjects.calls))
        async for record in backlog(bus, subjects.calls, subjects.everything("call"), after_seq=self._read_seq):
            self._count(record)

    async def say(self, bus: Bus, subjects: Subjects) -> None:
        """Writes what calls came to, for ever. Others count the same: whose word is the newest makes no difference."""
        said_seq = self._read_seq
        while True:
            await anyio.sleep(_SAY_S)
            if (seq := self._read_seq) == said_seq:
                continue
            spent = self._spending
            word = JudgeSpending(calls_seq=seq, num_calls=spent.num_calls, cost=spent.cost, dearest=spent.dearest)
            try:
                await bus.append(subjects.feeding, subjects.spent, word)
                said_seq = seq
            except BusUnavailable as error:
                _log.warning("budget_unwritten", reason=str(error))

    async def follow(self, bus: Bus, subjects: Subjects) -> None:
        """Reads CALLS on, for ever."""

        def take(record: Record) -> None:
            self._count(record)
            self._wake()

        await follow(bus, subjects.calls, subjects.everything("call"), take, after_seq=self._read_seq)


@asynccontextmanager
async def open_budget(bus: Bus, subjects: Subjects, config: JudgeConfig, status: Status) -> AsyncIterator[Budget]:
    """The budget of the run's judges, kept up to date while the context is open. Without a limit nothing is read.

    Raises:
        BusUnavailable: CALLS cannot be read.
    """
    budget = Budget(config, status)
    if not (budget.limits_calls or budget.limits_cost):
        yield budget
        return
    await budget.read_up(bus, subjects)
    async with background(partial(budget.follow, bus, subjects), partial(budget.say, bus, subjects)):
        yield budget
