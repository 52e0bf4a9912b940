"""Places an episode's reward on its tokens."""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from schemas.objective_config import KlType
from trainer.advantages import Steps
from trainer.advantages.divergence import divergence


def token_rewards(
    reward: float, lengths: Sequence[int], *, trained: Sequence[int] = (), step_rewards: Sequence[float] = ()
) -> Steps:
    """The reward at the episode's last token; with `step_rewards`, at the end of the steps that earned it.

    `lengths` are the completion tokens of the steps that are trained on, `trained` their numbers in the episode, ascending.
    What a step earned that is not trained on goes to the next one that is, and to the last one behind it; what no step earned
    was earned by the episode's end. So the tokens' rewards always sum up to `reward`.

    Example: `token_rewards(1.0, [2, 3], trained=[1, 4], step_rewards=[0.1, 0.2, 0.4])` is ([0, 0.3], [0, 0, 0.7]).
    """
    steps = tuple(np.zeros(length) for length in lengths)
    if not steps:
        return ()
    assert not step_rewards or len(trained) == len(lengths)
    for index, earned in enumerate(step_rewards):
        steps[min(bisect_left(trained, index), len(steps) - 1)][-1] += earned
    steps[-1][-1] += reward - sum(step_rewards)
    return steps


def less_divergence(rewards: Steps, logprobs: Steps, reference: Steps, *, kind: KlType, coef: float) -> Steps:
    """Every token's reward less `coef` times its divergence from the reference. `logprobs`: at the start of the update."""
    return tuple(
        earned - coef * divergence(np.asarray(ours, np.float64) - theirs, kind)
        for earned, ours, theirs in zip(rewards, logprobs, reference, strict=True)
    )
