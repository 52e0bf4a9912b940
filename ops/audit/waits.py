"""Measures how long anybody waited for anybody else, from the times at which the server stored the records. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from ops.audit.ledger import Kind, Ledger
from ops.statistics.spread import quantile


class Waiting(Enum):
    """What a wait was for."""

    TAKEOVER = "takeover"
    """The last record of an attempt until the start of the next: the browser worker was dead, or taken for it."""
    ANSWER = "answer"
    """An observation until its answer, or its refusal."""
    END = "end"
    """An observation until its episode's end, without an answer: short after the last action, long when nobody answers."""
    JUDGEMENT = "judgement"
    """The end of an episode until its judgement by the rubric that is trained by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    what: Waiting
    episode: str
    began_s: float
    """Unix seconds."""
    ended_s: float

    @property
    def seconds(self) -> float:
        return self.ended_s - self.began_s


@dataclass(frozen=True, kw_only=True)
class WaitMetrics:
    """Seconds."""

    num_waits: int = 0
    p50_s: float = 0.0
    p99_s: float = 0.0
    max_s: float = 0.0


def waits(ledger: Ledger, rubric: str) -> Iterator[Wait]:
    """`rubric`: whose judgements are waited for; another may judge whenever it likes."""
    ruled: dict[str, float] = {}
    for record in ledger.ruled:
        if record.rubric == rubric:
            ruled.setdefault(record.episode, record.time_s)
    for episode, links in ledger.chains.items():
        for before, after in pairwise(links):
            what = None
            if after.kind is Kind.START and after.attempt > 1:
                what = Waiting.TAKEOVER
            elif before.kind is Kind.OBSERVATION and after.kind in (Kind.ANSWER, Kind.REFUSAL):
                what = Waiting.ANSWER
            elif before.kind is Kind.OBSERVATION and after.kind is Kind.DONE:
                what = Waiting.END
            if what is not None:
                yield Wait(what=what, episode=episode, began_s=before.time_s, ended_s=after.time_s)
        if links[-1].kind is Kind.DONE and episode in ruled:
            yield Wait(what=Waiting.JUDGEMENT, episode=episode, began_s=links[-1].time_s, ended_s=ruled[episode])


def metrics(found: Iterable[Wait]) -> WaitMetrics:
    seconds = sorted(wait.seconds for wait in found)
    if not seconds:
        return WaitMetrics()
    return WaitMetrics(
        num_waits=len(seconds),
        p50_s=quantile(seconds, 0.5),
        p99_s=quantile(seconds, 0.99),
        max_s=seconds[-1],
    )
