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
from trainer.samples import Sample

_FAR = math.log(2)


def comparable(sample: Sample, version: PolicyVersion) -> bool:
    """Whether every token of a sample was sampled by exactly this version, with its log-probability kept."""
    return bool((sample.versions == version).all()) and len(sample.logprobs) == sample.num_completion


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Over all completion tokens of some samples; a ratio is the trainer's probability by the sampler's."""

    mean: float
    """Absolute difference of the log-probabilities, nats."""
    k3: float
    """KL divergence of the sampler's distribution from the trainer's, nats, as the mean of ratio - 1 - log ratio (Schulman
    2020, "Approximating KL divergence"): small differences hardly count."""
    far_share: float
    """Of tokens whose ratio is above 2 or below 1/2."""


def measured_mismatch(samples: Sequence[Sample], trained: Sequence[np.ndarray]) -> Mismatch:
    """`trained`: the trainer's log-probabilities of each sample's completion tokens."""
    pairs = zip(samples, trained, strict=True)
    logs = np.concatenate([np.asarray(ours - sample.logprobs, np.float64) for sample, ours in pairs])
    with np.errstate(over="ignore", invalid="ignore"):
        k3 = np.expm1(logs) - logs
    return Mismatch(float(np.abs(logs).mean()), float(k3.mean()), float((np.abs(logs) > _FAR).mean()))


def check_mismatch(mismatch: float, *, bound: float, version: PolicyVersion, num_samples: int) -> None:
    """Raises `MismatchExceeded` above the bound (or when it is not a number)."""
    if mismatch <= bound:
        return
    raise MismatchExceeded(
        f"the policy's and the trainer's log-probabilities of the same tokens differ by {mismatch:.4f} nats on average "
        f"({num_samples} samples of version {version}; trainer_config.max_mismatch is {bound}). Likely causes: the policy did "
        "not load the announced weights (a tied lm_head that kept its old value, caches that were not reset); the trainer and "
        "the policy use different model folders, processors or precisions; policy_config.temperature, top_k, top_p or min_p "
        "differ between the two. Compare the folders, restart the policy workers, or raise the bound if the difference is "
        "rounding"
    )
