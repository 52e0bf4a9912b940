"""What advantages are estimated from, what all estimators share, and how their advantages are credited to steps."""

from dataclasses import dataclass

import numpy as np

from schemas.ids import GroupId

Steps = tuple[np.ndarray, ...]
"""float64, (completion,) for each step of an episode that is trained on, in order."""


@dataclass(frozen=True, slots=True, eq=False)
class EpisodeRewards:
    """What an estimator knows of one episode."""

    group: GroupId
    reward: float
    """Of the whole episode, shaped."""
    rewards: Steps
    """By token: the episode's reward at its last token, or what each step earned at the end of that step, less the divergence
    from the reference where that is configured."""
    num_steps: int
    """Answered steps, those that are not trained on included."""
    values: Steps = ()
    """The critic's value before each token; empty without a critic."""
    anchors: tuple[str, ...] = ()
    """Of each step, what its page looked like: equal where the policy saw the same."""
    greedy: bool = False
    """A baseline of remax: sampled greedily, and not trained on."""
    success: bool = False
    """By its verdict, whatever its reward."""
    cut_off: bool = False
    """It did not end by itself: the step cap or the time-out ended it."""
    kind: str = ""
    """Of its task: equal for tasks of one subdomain."""

    @property
    def score(self) -> float:
        """What the episode is compared by: what its tokens earned; without trained tokens, its reward."""
        return float(sum(step.sum() for step in self.rewards)) if self.rewards else self.reward


@dataclass(frozen=True, slots=True, eq=False)
class EpisodeAdvantages:
    """In the order of `EpisodeRewards`."""

    advantages: Steps
    returns: Steps = ()
    """What the critic is trained towards; NaN at tokens that it does not learn from; empty without a critic."""
