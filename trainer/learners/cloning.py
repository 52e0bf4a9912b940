"""Filtered behaviour cloning: the steps of the last iterations' successful episodes, drawn from a replay buffer (WebGym)."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

import msgspec
import numpy as np
import structlog

from schemas.algorithm_config import AlgorithmConfig
from schemas.ids import PolicyVersion
from schemas.messages import Judgement, RecordRef
from schemas.objective_config import ObjectiveConfig
from trainer.episodes.consumption import BatchPlan
from trainer.episodes.intake import IsLast, Judged, sized
from trainer.episodes.replay import Replay
from trainer.episodes.validation import is_held_out
from trainer.imitation import cloning_items, evenly_weighted, untempered
from trainer.items import Item, replaced
from trainer.learners.parts import LearningRules, Parts
from trainer.losses import needs_proximal
from trainer.readings import AnchorReader, Anchors
from trainer.scores import is_success
from trainer.training_metrics import PhaseClock
from trainer.updates import MakeItems, OptimizerStep
from trainer.versions.checkpoints import TrainerState

_log = structlog.get_logger()


class Cloning:
    """A `Learner`."""

    def __init__(
        self,
        parts: Parts,
        state: TrainerState,
        *,
        algorithm: AlgorithmConfig,
        objective: ObjectiveConfig,
        rules: LearningRules,
    ) -> None:
        self._parts = parts
        self._seed = rules.seed
        self._batch_size = rules.batch_size
        self._val_split_ratio = algorithm.val_split_ratio
        self._val_max_steps = algorithm.val_max_steps
        self._objective = objective
        self._anchors = AnchorReader(parts.readings, parts.engine, rules.truncation, proximal=True)
        self._replay = Replay(algorithm, state.replay)
        self._is_stored = rules.staleness_bound is None
        # Of a stored data set `val_loss` is measured on the same steps after every version, as soon as they all came.
        self._validation = Replay(algorithm, state.validation, lasting=self._is_stored)

    def wants(self, judgement: Judgement) -> bool:
        return is_success(judgement)

    def begin(self) -> IsLast:
        return sized(self._batch_size)

    async def take_in(
        self, batch: Sequence[Judged], plan: BatchPlan, version: PolicyVersion, *, ends_pass: bool
    ) -> dict[str, float]:
        """Adds the fresh successful episodes' steps to the replay buffer, or to the validation split."""
        successful = {judgement.episode for judgement in plan.successes}
        left_out: Counter[str] = Counter()
        usable: list[tuple[RecordRef, str]] = []
        validation: list[tuple[RecordRef, str]] = []
        for item in batch:
            await item.ready.wait()
            if item.judgement.episode in successful:
                task = item.judgement.trajectory.task
                taken = validation if is_held_out(task.task, self._val_split_ratio) else usable
                taken.extend((step, task.subdomain) for step in item.steps.usable)
                left_out.update({reason.value: count for reason, count in item.steps.left_out.items()})
        self._replay.add(version, usable)
        self._validation.add(version, validation)
        return {"fresh_samples": float(len(usable)), "replay": float(len(self._replay.entries))} | {
            f"left_out_{reason}": float(count) for reason, count in left_out.items() if count
        }

    async def train(self, version: PolicyVersion, clock: PhaseClock) -> dict[str, float]:
        refs = self._replay.draw(self._seed, version)
        if not refs:
            _log.warning("nothing_to_train_on", version=version)
        items, vary = await self._items(refs, version, clock), self._parts.augmentation
        metrics = await self._parts.updates.run(refs, items, version, vary=vary)
        clock.end("train")
        validated = await self._validate()
        clock.end("validation")
        return metrics.means() | validated

    def remember(self, state: TrainerState) -> TrainerState:
        return msgspec.structs.replace(state, replay=self._replay.entries, validation=self._validation.entries)

    async def _items(self, refs: Sequence[RecordRef], version: PolicyVersion, clock: PhaseClock) -> MakeItems:
        if not needs_proximal(self._objective):
            return lambda step: cloning_items(step.samples)
        anchors = await self._anchors.of(refs)
        clock.end("proximal")
        return partial(_weighted_items, anchors, version)

    async def _validate(self) -> dict[str, float]:
        entries, count = self._validation.entries, self._val_max_steps
        chosen = entries[: count or None] if self._is_stored else entries[-count:]  # 0: all of them
        refs = [entry.step for entry in chosen]
        engine = self._parts.engine
        logprobs = await self._parts.readings.of(refs, lambda samples: engine.completion_logprobs(untempered(samples)))
        if not logprobs:
            return {}
        return {
            "val_loss": -float(np.concatenate(list(logprobs.values())).mean(dtype=np.float64)),
            "val_samples": float(len(logprobs)),
        }


def _weighted_items(anchors: Anchors, version: PolicyVersion, step: OptimizerStep) -> list[Item]:
    """Every completion token counts the same, as far as its importance weight lets it: a ratio of what was sampled."""
    items = evenly_weighted([sample for sample in step.samples if sample.ref in anchors.proximal])
    return [Item(item.sample, replaced(item.targets, **anchors.targets(item.sample, version))) for item in items]
