"""Brings held-out rounds to the trackers: the feeder has them played, the judges score them, and the trainer hears of it here.

A round's metrics are written once, when all of its episodes have been judged.
"""

from collections import defaultdict
from collections.abc import Collection

import anyio
import structlog

from bus.following import follow
from bus.ports import Bus, Record
from bus.subjects import Subjects
from schemas.ids import EpisodeId, PolicyVersion
from schemas.messages import Judgement, Split
from trainer.batch_metrics import round_metrics
from trainer.tracking import EVALUATION
from trainer.tracking.log import Tracking

_log = structlog.get_logger()


class Evaluations:
    """`run` beside the trainer; `complete` returns when every expected round has been written."""

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        tracking: Tracking,
        *,
        rubric: str,
        versions: Collection[PolicyVersion],
        size: int,
    ) -> None:
        """`versions`: those that are evaluated; `size`: episodes of a round, above 0."""
        self._bus = bus
        self._subjects = subjects
        self._tracking = tracking
        self._rubric = rubric
        self._size = size
        self._awaited = {version for version in versions if not tracking.has_evaluation(version)}
        self._judged: defaultdict[PolicyVersion, dict[EpisodeId, Judgement]] = defaultdict(dict)
        self._complete = anyio.Event()

    async def run(self) -> None:
        self._settle()
        filtered = self._subjects.judgements_by(self._rubric, Split.EVAL)
        await follow(self._bus, self._subjects.judged, filtered, self._take)

    async def complete(self) -> None:
        await self._complete.wait()

    def _take(self, record: Record) -> None:
        judgement = record.message
        if not isinstance(judgement, Judgement):
            return
        # Rounds are numbered through: training may have gone on by the time that an episode is admitted or played.
        version = PolicyVersion(judgement.trajectory.task.index // self._size)
        if version not in self._awaited:
            return
        found = self._judged[version]
        found[judgement.episode] = judgement
        if len(found) < self._size:
            return
        metrics = {EVALUATION + name: value for name, value in round_metrics(list(found.values())).items()}
        self._tracking.evaluated(version, metrics)
        _log.info("evaluation_logged", version=version, **metrics)
        self._awaited.discard(version)
        del self._judged[version]
        self._settle()

    def _settle(self) -> None:
        if not self._awaited:
            self._complete.set()
