"""Aggregates token losses into one loss: the share that every token has in the whole optimizer step.

The loss of a step is the sum of weight * token loss over all its tokens, wherever they are computed. The weights come from the
counts of the whole step, or of the whole iteration, so that the loss does not depend on how it is split over micro-batches and
ranks. Every token that is trained on counts, whatever its advantage is.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from schemas.ids import EpisodeId
from schemas.objective_config import Aggregation


@dataclass(frozen=True)
class IterationCounts:
    """Of all optimizer steps of an epoch."""

    num_sequences: int
    tokens: Counter[EpisodeId]
    """Trained ones, of each episode that has any."""

    @classmethod
    def of(cls, sequences: Iterable[tuple[EpisodeId, int]]) -> "IterationCounts":
        """`sequences`: the episode and the trained tokens of each."""
        trained = [(episode, count) for episode, count in sequences if count]
        tokens: Counter[EpisodeId] = Counter()
        for episode, count in trained:
            tokens[episode] += count
        return cls(len(trained), tokens)


def token_weights(
    masks: Sequence[np.ndarray],
    mode: Aggregation = "token-mean",
    *,
    scale_factor: float = 1024.0,
    episodes: Sequence[EpisodeId] = (),
    iteration: IterationCounts | None = None,
) -> list[np.ndarray]:
    """The weight of every token of every sequence of an optimizer step, float64, shaped like `masks` (1: trained on, 0: not).

    token-mean: 1 / all trained tokens. seq-mean-token-sum: 1 / sequences. seq-mean-token-mean: 1 / (sequences * the sequence's
    trained tokens). seq-mean-token-sum-norm: 1 / (sequences * `scale_factor`). Sequences without a trained token do not count.

    Trajectories are those of the iteration, since their sequences may stand in several of its steps: traj-mean-token-sum: 1 /
    trajectories. traj-mean-token-mean: 1 / (trajectories * the trajectory's trained tokens). traj-mean-token-sum-norm: 1 /
    (trajectories * `scale_factor`). traj-mean-seq-sum: 1 / (trajectories * the sequence's trained tokens). Each is multiplied
    by the iteration's sequences / the step's, so that the mean of the iteration's steps is the loss of the iteration.

    Args:
        episodes: of each sequence.
        iteration: not given, the step is all of it.
    """
    counts = [int(mask.sum()) for mask in masks]
    num_sequences = sum(count > 0 for count in counts)
    divisors: list[float]
    match mode:
        case "token-mean":
            divisors = [sum(counts)] * len(counts)
        case "seq-mean-token-sum":
            divisors = [num_sequences] * len(counts)
        case "seq-mean-token-mean":
            divisors = [num_sequences * count for count in counts]
        case "seq-mean-token-sum-norm":
            divisors = [num_sequences * scale_factor] * len(counts)
        case _:
            whole = iteration or IterationCounts.of(zip(episodes, counts, strict=True))
            num_trajectories = len(whole.tokens) * num_sequences / max(1, whole.num_sequences)
            match mode:
                case "traj-mean-token-sum":
                    divisors = [num_trajectories] * len(counts)
                case "traj-mean-token-mean":
                    divisors = [num_trajectories * whole.tokens[episode] for episode in episodes]
                case "traj-mean-token-sum-norm":
                    divisors = [num_trajectories * scale_factor] * len(counts)
                case "traj-mean-seq-sum":
                    divisors = [num_trajectories * count for count in counts]
    return [
        mask.astype(np.float64) / divisor if divisor else np.zeros(len(mask))
        for mask, divisor in zip(masks, divisors, strict=True)
    ]
