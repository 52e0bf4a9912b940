"""Reads what models say of many steps' tokens, part by part, so that no more screenshots than one part's are held for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from schemas.ids import PolicyVersion
from schemas.messages import RecordRef
from trainer.episodes.episode_steps import StepStore
from trainer.ports import TrainingEngine
from trainer.samples import Sample
from trainer.torch_thread import InThread
from trainer.truncation import Truncation

Read = Callable[[Sequence[Sample]], list[np.ndarray]]
"""Of each sample: float32, (completion,)."""
ByStep = dict[RecordRef, np.ndarray]


class Readings:
    """Reads `at_once` steps at a time. Parts depend on the order of the steps alone, so that a repetition reads the same."""

    def __init__(self, store: StepStore, in_thread: InThread, *, at_once: int) -> None:
        self._store = store
        self._in_thread = in_thread
        self._at_once = at_once

    async def of(self, refs: Sequence[RecordRef], read: Read) -> ByStep:
        """By step; steps that cannot be had any more are absent."""
        found: ByStep = {}
        for first in range(0, len(refs), self._at_once):
            samples = await self._store.samples(refs[first : first + self._at_once])
            if samples:
                arrays = await self._in_thread(partial(read, samples))
                found.update(zip((sample.ref for sample in samples), arrays, strict=True))
        return found


@dataclass(frozen=True, eq=False)
class Anchors:
    """What the ratios of a policy loss are taken against, by step; empty where the sampler's own will do."""

    proximal: ByStep
    """Under the weights at the start of the update, over the whole vocabulary."""
    cut: ByStep
    """The same as a sampler gives them that cuts its distribution off."""

    def targets(self, sample: Sample, version: PolicyVersion, *, varied: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """A sample's `staleness` and, as far as they are known, `proximal` and `behaviour`.

        `version`: of the present weights. `varied`: the proximal log-probabilities of what is trained on in place of what was
        sampled: pi_proximal / pi_behaviour then says how much less often it would be said there.

        The loss computes log-probabilities over the whole vocabulary, and a sampler that cuts off gives every token a larger
        one. By how much, the present weights tell; taken off the sampler's, what remains of pi_proximal / pi_behaviour is what
        the weights changed.
        """
        whole, cut = self.proximal.get(sample.ref), self.cut.get(sample.ref)
        proximal = whole if varied is None else varied
        if proximal is None:
            return {"staleness": sample.staleness(version)}
        behaviour = sample.logprobs if len(sample.logprobs) else proximal
        cut_off = whole - cut if whole is not None and cut is not None and len(sample.logprobs) else 0.0
        return {"proximal": proximal, "behaviour": behaviour + cut_off, "staleness": sample.staleness(version)}


class AnchorReader:
    """Reads them under the engine's present weights, as far as the objective and the sampler ask for them."""

    def __init__(self, readings: Readings, engine: TrainingEngine, truncation: Truncation, *, proximal: bool) -> None:
        self._readings = readings
        self._engine = engine
        self._truncation = truncation
        self._proximal = proximal

    async def of(self, refs: Sequence[RecordRef], *, varied: bool = False) -> Anchors:
        """`varied`: of other samples than those that are trained on, which tell no more than what was cut off."""
        if not self._truncation.active and (varied or not self._proximal):
            return Anchors({}, {})
        proximal = await self._readings.of(refs, self._engine.completion_logprobs)
        if not self._truncation.active:
            return Anchors(proximal, {})
        cut = partial(self._engine.completion_logprobs, truncation=self._truncation)
        return Anchors(proximal, await self._readings.of(refs, cut))
