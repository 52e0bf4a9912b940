"""Filtered behaviour cloning: the steps of the last iterations' successful episodes, drawn from a replay buffer (WebGym)."""

from collections import Counter
from collections.abc import Sequence

import structlog

from schemas.ids import PolicyVersion
from schemas.messages import Judgement, RecordRef
from schemas.training_config import AlgorithmConfig, TrainerConfig
from trainer.checkpoints import TrainerState
from trainer.consumption import BatchPlan
from trainer.figures import PhaseClock
from trainer.imitation import cloning_items
from trainer.intake import Judged
from trainer.replay import Replay
from trainer.scores import is_success
from trainer.updates import Updates

_log = structlog.get_logger()


class Cloning:
    """A `Learner`."""

    def __init__(self, updates: Updates, algorithm: AlgorithmConfig, trainer: TrainerConfig, state: TrainerState) -> None:
        self._updates = updates
        self._seed = trainer.seed
        self._replay = Replay(algorithm, state.replay)

    def wants(self, judgement: Judgement) -> bool:
        return is_success(judgement)

    async def take_in(self, batch: Sequence[Judged], plan: BatchPlan, version: PolicyVersion) -> dict[str, float]:
        """Adds the fresh successful episodes' steps to the replay buffer."""
        successful = {judgement.episode for judgement in plan.successes}
        left_out: Counter[str] = Counter()
        usable: list[RecordRef] = []
        for item in batch:
            await item.ready.wait()
            if item.judgement.episode in successful:
                usable.extend(item.steps.usable)
                left_out.update({reason.value: count for reason, count in item.steps.left_out.items()})
        self._replay.add(version, usable)
        return {"fresh_samples": float(len(usable)), "replay": float(len(self._replay.entries))} | {
            f"left_out_{reason}": float(count) for reason, count in left_out.items() if count
        }

    async def train(self, version: PolicyVersion, clock: PhaseClock) -> dict[str, float]:
        refs = self._replay.draw(self._seed, version)
        if not refs:
            _log.warning("nothing_to_train_on", version=version)
        figures = await self._updates.run(refs, cloning_items, version)
        clock.end("train")
        return figures.metrics()

    def remember(self, state: TrainerState) -> TrainerState:
        return state.with_replay(self._replay.entries)
