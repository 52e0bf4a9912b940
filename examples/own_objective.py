"""An estimator and a loss of one's own, for a run whose configuration names them:

objective_config:
  adv_estimator: examples/own_objective.py:median
  loss_type: examples/own_objective.py:asymmetric
  group_size: 8
  settings: {pessimism: 0.5}
"""

from collections.abc import Sequence

import numpy as np
import torch

from trainer.advantages import EpisodeAdvantages, EpisodeRewards
from trainer.advantages.groups import scores_by_group
from trainer.advantages.tokens import spread
from trainer.estimators import estimator
from trainer.losses import loss
from trainer.token_losses import TokenLosses, TokenTargets


@estimator("median", compares=True)
def median(episodes: Sequence[EpisodeRewards]) -> list[EpisodeAdvantages]:
    """A = R - the median of its group: one lucky episode does not make all others bad."""
    middles = {group: float(np.median(scores)) for group, scores in scores_by_group(episodes).items()}
    return [EpisodeAdvantages(spread(each.score - middles[each.group], each.rewards)) for each in episodes]


@loss("asymmetric", skips_zero_advantage=True)
def asymmetric(logprobs: torch.Tensor, targets: TokenTargets, *, pessimism: float = 1.0) -> TokenLosses:
    """-A log pi, with failures counted `pessimism` times."""
    advantages = torch.where(targets.advantages < 0, pessimism * targets.advantages, targets.advantages)
    return TokenLosses(-advantages * logprobs)
