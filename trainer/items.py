"""Defines what an optimizer step trains on: samples, and what every completion token of them is trained towards."""

from dataclasses import dataclass, fields

import numpy as np

from trainer.samples import Sample


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """Of one sample: float32, (completion,) each. What an objective does not use is zero."""

    weights: np.ndarray
    """Each token's share in the loss of the whole optimizer step, see `trainer.objective.aggregation`; 0: not trained on."""
    advantages: np.ndarray
    behaviour: np.ndarray
    """Log-probabilities under the policies that sampled the tokens."""
    proximal: np.ndarray
    """Log-probabilities under the policy at the start of the update."""
    reference: np.ndarray
    """Log-probabilities under the frozen reference."""
    values: np.ndarray
    """The critic's, at the start of the update."""
    returns: np.ndarray
    """What the critic is trained towards."""
    staleness: np.ndarray
    """How many versions the policy at the start of the update is ahead of the one that sampled the token."""


NUM_TARGETS = len(fields(Targets))


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One sample of an optimizer step."""

    sample: Sample
    targets: Targets

    @property
    def idle(self) -> "Item":
        """The same with weight 0: takes part in a backward pass, and changes nothing."""
        return Item(self.sample, replaced(self.targets, weights=np.zeros_like(self.targets.weights)))


def targets_of(sample: Sample, **arrays: np.ndarray) -> Targets:
    """The targets of a sample: its sampler's log-probabilities, and what is given; the rest is zero.

    Example: `targets_of(sample, advantages=np.full(sample.num_completion, 0.5))`.
    """
    zeros = np.zeros(sample.num_completion, dtype=np.float32)
    behaviour = sample.logprobs if len(sample.logprobs) else zeros
    return replaced(Targets(zeros, zeros, behaviour, zeros, zeros, zeros, zeros, zeros), **arrays)


def replaced(targets: Targets, **arrays: np.ndarray) -> Targets:
    """The same targets with some replaced, as float32."""
    kept = {field.name: getattr(targets, field.name) for field in fields(Targets)}
    return Targets(**kept | {name: np.asarray(array, dtype=np.float32) for name, array in arrays.items()})
