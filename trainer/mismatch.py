"""The mismatch gate: the sampler's and the trainer's log-probabilities of the same tokens must agree.

They are computed by two programs from what should be the same weights, tokens and screenshots; a difference beyond rounding
means that they are not the same, and that every figure of the run is in doubt.
"""

from collections.abc import Sequence

import numpy as np

from schemas.errors import MismatchExceeded
from schemas.ids import PolicyVersion
from trainer.samples import Sample


def comparable(sample: Sample, version: PolicyVersion) -> bool:
    """Whether every token of a sample was sampled by exactly this version, with its log-probability kept."""
    return bool((sample.versions == version).all()) and len(sample.logprobs) == sample.num_completion


def mean_mismatch(samples: Sequence[Sample], trained: Sequence[np.ndarray]) -> float:
    """Mean absolute difference over all completion tokens, in nats."""
    differences = [np.abs(sample.logprobs - ours) for sample, ours in zip(samples, trained, strict=True)]
    return float(np.concatenate(differences).mean())


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
