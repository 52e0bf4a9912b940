"""The mismatch gate: the sampler's and the trainer's log-probabilities of the same tokens must agree.

They are computed by two programs from what should be the same weights, tokens and screenshots; a difference beyond rounding
means that they are not the same, and that every figure of the run is in doubt.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schemas.errors import MismatchExceeded
from schemas.ids import PolicyVersion
from schemas.trainer_config import TrainerConfig
from trainer.samples import Sample

_FAR = math.log(2)
_MOST = 1.0
"""What one token adds to k3 at most, nats."""


def comparable(sample: Sample, version: PolicyVersion) -> bool:
    """Whether every token of a sample was sampled by exactly this version, with its log-probability kept."""
    return bool((sample.versions == version).all()) and len(sample.logprobs) == sample.num_completion


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Over the completion tokens of some samples; a ratio is the trainer's probability by the sampler's. Not a number where
    one of the log-probabilities is none."""

    mean: float
    """Absolute difference of the log-probabilities, nats."""
    k3: float
    """KL divergence of the sampler's distribution from the trainer's, nats, as the mean of ratio - 1 - log ratio (Schulman
    2020, "Approximating KL divergence"), each held to 1, without the token that differs most: rounding hardly counts, and
    no token decides alone."""
    far_share: float
    """Of tokens whose ratio is above 2 or below 1/2, without the one that differs most."""


def measured_mismatch(samples: Sequence[Sample], trained: Sequence[np.ndarray]) -> Mismatch:
    """`trained`: the trainer's log-probabilities of each sample's completion tokens."""
    pairs = zip(samples, trained, strict=True)
    logs = np.concatenate([np.asarray(ours - sample.logprobs, np.float64) for sample, ours in pairs])
    if not np.isfinite(logs).all():
        return Mismatch(math.nan, math.nan, math.nan)
    counted = logs[np.argsort(np.abs(logs))[:-1]]
    with np.errstate(over="ignore"):
        k3 = np.minimum(np.expm1(counted) - counted, _MOST)
    return Mismatch(float(np.abs(logs).mean()), float(k3.sum()) / len(logs), float((np.abs(counted) > _FAR).sum()) / len(logs))


def check_mismatch(mismatch: Mismatch, *, trainer: TrainerConfig, version: PolicyVersion, num_samples: int) -> None:
    """Raises `MismatchExceeded` above one of the bounds, or where the mismatch is not a number."""
    if mismatch.k3 <= trainer.max_mismatch_k3 and mismatch.far_share <= trainer.max_mismatch_far:
        return
    raise MismatchExceeded(
        f"the policy's and the trainer's log-probabilities of the same tokens do not agree: k3 is {mismatch.k3:.4f} nats "
        f"(trainer_config.max_mismatch_k3: {trainer.max_mismatch_k3:g}), and the probabilities of {mismatch.far_share:.1%} of "
        f"the tokens differ by more than a factor of 2 (trainer_config.max_mismatch_far: {trainer.max_mismatch_far:g}); "
        f"{num_samples} samples of version {version}. Likely causes: the policy did not load the announced weights (a tied "
        "lm_head that kept its old value, caches that were not reset); trainer and policy use different model folders, "
        "tokenizers or processors; policy_config.temperature, top_k, top_p or min_p differ between the two. Compare the "
        "folders and restart the policy workers. bfloat16 on either side stays far below the bounds: raise them only for a "
        "model whose rounding was measured"
    )
