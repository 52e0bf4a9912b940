"""The estimator that a configuration names."""

from schemas.objective_config import ObjectiveConfig
from trainer.advantages import Estimator
from trainer.advantages.bi_level_gae import BiLevelGae
from trainer.advantages.gae import Gae
from trainer.advantages.grpo import GroupRelative
from trainer.advantages.reinforce_plus_plus import ReinforcePlusPlus
from trainer.advantages.remax import remax
from trainer.advantages.rloo import leave_one_out
from trainer.advantages.scaling import Scaled


def estimator(config: ObjectiveConfig) -> Estimator:
    """With all its settings. Raises `ValueError` for `none`: imitation knows no advantages."""
    return Scaled(
        _plain(config),
        length_normaliser=config.length_normaliser,
        length_constant=config.length_constant,
        negative_scale=config.negative_advantage_scale,
    )


def _plain(config: ObjectiveConfig) -> Estimator:
    match config.adv_estimator:
        case "grpo":
            return GroupRelative(by_std=config.norm_adv_by_std_in_grpo)
        case "rloo":
            return leave_one_out
        case "reinforce_plus_plus" | "reinforce_plus_plus_baseline" as name:
            return ReinforcePlusPlus(gamma=config.gamma, subtracts_group_mean=name.endswith("baseline"))
        case "remax":
            return remax
        case "gae":
            return Gae(gamma=config.gamma, lam=config.lam)
        case "bi_level_gae":
            return BiLevelGae(gamma=config.gamma, lam=config.lam, high_level_gamma=config.high_level_gamma)
        case "none":
            raise ValueError("objective_config.adv_estimator is none: there are no advantages to estimate")
