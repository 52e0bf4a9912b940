"""Places an episode's reward on its tokens, shaped as the objective says."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schemas.objective_config import ObjectiveConfig
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


def overlong_penalty(length: int, *, max_new_tokens: int, buffer_len: int, factor: float) -> float:
    """0 for an answer of up to `max_new_tokens - buffer_len` tokens, falling from there to -`factor` at `max_new_tokens`."""
    over = length - (max_new_tokens - buffer_len)
    return min(0.0, -over / buffer_len * factor)


@dataclass(frozen=True)
class RewardRules:
    """What becomes of an episode's reward on its way to the tokens."""

    objective: ObjectiveConfig
    max_new_tokens: int = 0
    """Of one answer."""

    @property
    def needs_reference(self) -> bool:
        return self.objective.kl_reward_coef > 0

    def adjusted(self, reward: float) -> float:
        """Scaled, then held within the clip."""
        scaled, most = reward * self.objective.reward_scale, self.objective.reward_clip
        return max(-most, min(most, scaled)) if most else scaled

    def placed(self, reward: float, lengths: Sequence[int], *, trained: Sequence[int], step_rewards: Sequence[float]) -> Steps:
        """On the tokens, as `token_rewards` does; answers that come near to their limit of tokens cost."""
        objective = self.objective
        earned = [each * objective.reward_scale for each in step_rewards] if objective.use_multi_turn_reward else ()
        steps = token_rewards(self.adjusted(reward), lengths, trained=trained, step_rewards=earned)
        if objective.overlong_buffer_len:
            for step in steps:
                step[-1] += overlong_penalty(
                    len(step),
                    max_new_tokens=self.max_new_tokens,
                    buffer_len=objective.overlong_buffer_len,
                    factor=objective.overlong_penalty_factor,
                )
        return steps

    def less_divergence(self, rewards: Steps, logprobs: Steps, reference: Steps) -> Steps:
        """Every token's reward less its divergence from the reference. `logprobs`: at the start of the update."""
        kind, coef = self.objective.kl_reward_type, self.objective.kl_reward_coef
        return tuple(
            earned - coef * divergence(np.asarray(ours, np.float64) - theirs, kind)
            for earned, ours, theirs in zip(rewards, logprobs, reference, strict=True)
        )
