"""Samples what the mismatch gate compares, and compares it: `trainer.mismatch` decides whether training may go on."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import numpy as np
import structlog

from schemas.feeder_config import FeederConfig
from schemas.ids import PolicyVersion
from schemas.messages import RecordRef
from schemas.trainer_config import TrainerConfig
from trainer.episodes.consumption import BatchPlan
from trainer.mismatch import check_mismatch, comparable, measured_mismatch
from trainer.samples import Sample
from trainer.scores import is_success

_log = structlog.get_logger()
Fetch = Callable[[Sequence[RecordRef]], Coroutine[Any, Any, list[Sample]]]
Logprobs = Callable[[Sequence[Sample]], Coroutine[Any, Any, list[np.ndarray]]]


class MismatchGate:
    """Compares log-probabilities on steps that the present weights sampled; says so when there are none.

    Online these are the steps of the trainer's own version. Stored episodes carry the versions of the run that played them:
    only the trainer's version 0 can be among those (`trainer_config.stored_version`). A baseline that was decoded greedily is
    left out: its sampler did not cut its distribution off.
    """

    def __init__(self, trainer: TrainerConfig, feeder: FeederConfig) -> None:
        self._trainer = trainer
        self._wanted = trainer.mismatch_samples
        self._offline = feeder.mode == "offline"
        self._stored_version = trainer.stored_version

    async def measure(self, plan: BatchPlan, version: PolicyVersion, *, fetch: Fetch, logprobs: Logprobs) -> dict[str, float]:
        """The metrics of a trainer that holds `version`; empty when nothing can be compared.

        Raises:
            MismatchExceeded: sampler and trainer do not hold the same weights, tokens or screenshots.
        """
        samples = await self._comparable(plan, self._sampled_as(version), fetch)
        if not samples:
            _log.info("mismatch_not_measured", version=version)
            return {}
        mismatch = measured_mismatch(samples, await logprobs(samples))
        check_mismatch(mismatch, trainer=self._trainer, version=version, num_samples=len(samples))
        return {
            "mismatch": mismatch.mean,
            "mismatch_k3": mismatch.k3,
            "mismatch_far": mismatch.far_share,
            "mismatch_samples": float(len(samples)),
        }

    def _sampled_as(self, version: PolicyVersion) -> PolicyVersion | None:
        """The version that the samplers of the present weights called themselves."""
        if not self._offline:
            return version
        return PolicyVersion(self._stored_version) if version == 0 and self._stored_version >= 0 else None

    async def _comparable(self, plan: BatchPlan, version: PolicyVersion | None, fetch: Fetch) -> list[Sample]:
        """Up to `mismatch_samples` samples of exactly this version; successful episodes first, they are at hand."""
        if version is None:
            return []
        refs = [
            ref
            for judgement in sorted(plan.fresh, key=lambda judgement: not is_success(judgement))
            if not judgement.trajectory.task.greedy
            for ref, played in zip(judgement.trajectory.steps, judgement.trajectory.versions, strict=False)
            if played == version
        ]
        found: list[Sample] = []
        for first in range(0, len(refs), max(1, self._wanted)):
            part = await fetch(refs[first : first + self._wanted])
            found.extend(sample for sample in part if comparable(sample, version))
            if len(found) >= self._wanted:
                break
        return found[: self._wanted]
