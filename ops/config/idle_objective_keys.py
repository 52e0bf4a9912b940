"""Keys of the objective that wait for another one that switches them on."""

from collections.abc import Callable

from ops.config.idle import Idle
from schemas.config import Config
from schemas.objective_config import CriticConfig, ObjectiveConfig

_KEY = "objective_config."


def _while(holds: Callable[[ObjectiveConfig], bool], why: str, *names: str) -> Idle:
    return Idle(tuple(_KEY + name for name in names), lambda config: holds(config.objective_config), why)


def _has_no_critic(config: Config) -> bool:
    objective = config.objective_config
    if objective.imitates or objective.critic == CriticConfig():
        return objective.imitates
    from trainer.estimators import traits_of  # numpy, which most commands do without

    return not traits_of(objective).critic


def _divides_scale_out(config: Config) -> bool:
    """Whether advantages come to the same for rewards of any scale."""
    objective = config.objective_config
    compared = objective.reward_clip or objective.kl_reward_coef or objective.overlong_buffer_len
    if objective.imitates or compared or objective.reward_scale == 1:
        return False
    from trainer.estimators import traits_of  # numpy, which most commands do without

    traits = traits_of(objective)
    normalised = (traits.whitens or objective.normalize_advantages) and not traits.critic
    return normalised or (objective.adv_estimator in ("grpo", "gigpo") and objective.norm_adv_by_std_in_grpo)


IDLE_OF_OBJECTIVE = (
    _while(lambda key: not key.kl_loss_coef, "objective_config.kl_loss_coef is 0", "kl_loss_type"),
    _while(lambda key: not key.kl_reward_coef, "objective_config.kl_reward_coef is 0", "kl_reward_type"),
    _while(lambda key: key.length_normaliser != "constant", "length_normaliser is not constant", "length_constant"),
    _while(lambda key: not key.loss_agg_mode.endswith("-norm"), "loss_agg_mode does not end in -norm", "loss_scale_factor"),
    _while(lambda key: not key.overlong_buffer_len, "objective_config.overlong_buffer_len is 0", "overlong_penalty_factor"),
    _while(lambda key: key.dynamic_sampling != "refill", "dynamic_sampling is not refill", "max_refill"),
    _while(
        lambda key: key.rejection_level == "none",
        "objective_config.rejection_level is none",
        "rejection_kind",
        "rejection_low",
        "rejection_high",
    ),
    _while(lambda key: key.imitates, "objective_config.adv_estimator is none", "negative_advantage_scale"),
    Idle((_KEY + "critic",), _has_no_critic, "objective_config.adv_estimator has no critic"),
    Idle(
        (_KEY + "reward_scale",),
        _divides_scale_out,
        "advantages are divided by their own deviation, and nothing else compares with rewards",
    ),
)
