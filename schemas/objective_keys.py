"""Keys of `objective_config` that switch something on, and which estimators or losses know it.

Only settings of what is off may stand there without effect, as `max_refill` without refill.
"""

_ESTIMATORS = ("grpo", "rloo", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "remax", "gae", "bi_level_gae")
_DISCOUNTING = ("reinforce_plus_plus", "reinforce_plus_plus_baseline", "gae", "bi_level_gae")
_CLIPPING = ("clipped", "decoupled", "truncated")

USERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "dynamic_sampling": ("adv_estimator", _ESTIMATORS),
    "length_normaliser": ("adv_estimator", _ESTIMATORS),
    "use_multi_turn_reward": ("adv_estimator", _ESTIMATORS),
    "gamma": ("adv_estimator", _DISCOUNTING),
    "lam": ("adv_estimator", ("gae", "bi_level_gae")),
    "high_level_gamma": ("adv_estimator", ("bi_level_gae",)),
    "clip_ratio_c": ("loss_type", _CLIPPING),
    "early_stop_imp_ratio": ("loss_type", (*_CLIPPING, "weighted_cloning")),
    "kl_loss_coef": ("adv_estimator", _ESTIMATORS),
    "kl_reward_coef": ("adv_estimator", _ESTIMATORS),
    "loss_agg_mode": ("adv_estimator", _ESTIMATORS),
}
"""By key: the key that decides, and its values with which this one has an effect."""
