"""What the peers' settings are here, peer by peer."""

from collections.abc import Callable, Iterator, Mapping
from math import exp
from typing import Any

from schemas.objective_config import RejectionKind, RejectionLevel
from tests.numeric.cases import Case

Changes = dict[str, Any]
"""Of `ObjectiveConfig`."""
Meaning = Callable[[Any], Changes]
Rejection = tuple[RejectionLevel, RejectionKind, float, float]
"""Level, kind, lower and upper bound."""
_NO_CAP = 1e9
_NO_LOWER_BOUND = 1.0 - 1e-12
"""`clip_ratio_low` is below 1 here."""


def _is(*names: str) -> Meaning:
    return lambda value: dict.fromkeys(names, value)


def _setting(name: str) -> Meaning:
    return lambda value: {"settings": {name: value}}


def _nothing(*names: str) -> dict[str, Meaning]:
    """These name a column or tell how the numbers were given: what computes and `DIFFERENCES` read them."""
    return dict.fromkeys(names, lambda _: {})


def _areal_rejection(found: Mapping[str, Any]) -> Changes:
    """The ratio is proximal / behaviour. `mask` leaves out what is out of bounds, `clamp` holds it to the upper one."""
    level = {"token": "token", "sequence": "sequence-mean"}[found["level"]]
    if found["action"] == "clamp":
        return {"importance_weight_level": level, "importance_weight_cap": found["upper"]}
    changes = {"importance_weight_level": level, "behaviour_weight_cap": found["upper"]}
    if "lower" in found:
        changes |= {"rejection_level": level, "rejection_low": found["lower"], "rejection_high": found["upper"]}
    return changes


_TRL_MODES = {
    "grpo": "seq-mean-token-mean",
    "dr_grpo": "seq-mean-token-sum-norm",
    **dict.fromkeys(("bnpo", "dapo", "cispo"), "token-mean"),
}
_GIGPO: dict[str, Meaning] = {
    "gamma": _is("gamma"),
    "step_advantage_w": _setting("step_advantage_weight"),
    "mode": lambda mode: {"norm_adv_by_std_in_grpo": {"mean_norm": False, "mean_std_norm": True}[mode]},
    **_nothing("epsilon", "compute_mean_std_cross_steps", "group_by_agent_id"),
}
_MEANINGS: dict[str, dict[str, Meaning]] = {
    "verl": {
        **{name: _is(name) for name in ("norm_adv_by_std_in_grpo", "gamma", "lam", "clip_ratio_high", "clip_ratio_c")},
        **{name: _is(name) for name in ("loss_agg_mode", "loss_scale_factor")},
        "clip_ratio_low": _is("clip_ratio_low"),
        "rollout_is": _is("importance_weight_level"),
        "rollout_is_threshold": _is("importance_weight_cap"),
        **_nothing("epsilon", "observation_tokens", "old_log_prob", "rollout_log_prob", "global_batch_info"),
    },
    "AReaL": {
        "discount": _is("gamma"),
        "gae_lambda": _is("lam"),
        "eps_clip": _is("clip_ratio_low", "clip_ratio_high"),
        "eps_clip_higher": lambda high: {"clip_ratio_high": high} if high else {},
        "c_clip": lambda c: {"clip_ratio_c": c or 0.0},
        "rejection_sampling": _areal_rejection,
        **_nothing("observation_tokens", "adv_norm", "reward_norm"),
        **_nothing("proximal_logprobs", "old_logprobs", "importance_sampling_level"),
    },
    "RLinf": {
        "gamma": _is("gamma"),
        "gae_lambda": _is("lam"),
        "clip_ratio_low": _is("clip_ratio_low"),
        "clip_ratio_high": _is("clip_ratio_high"),
        "clip_ratio_c": lambda c: {"clip_ratio_c": c or 0.0},
        "loss_agg": _is("loss_agg_mode"),
        "behave_weight_threshold": lambda cap: {"behaviour_weight_cap": cap or _NO_CAP},
        "proximal_logprobs": lambda name: {} if name else {"proximal": "interpolated"},
        **_nothing("observation_tokens", "normalize_advantages", "group_size", "epsilon", "use_reinpp_baseline", "kl_beta"),
        **_nothing("old_logprobs", "current_version"),
    },
    "TRL": {
        "epsilon": _is("clip_ratio_low"),
        "epsilon_high": _is("clip_ratio_high"),
        "delta": _is("clip_ratio_c"),
        "beta": _is("kl_loss_coef"),
        "loss_type": lambda mode: {"loss_agg_mode": _TRL_MODES[mode]},
        "max_completion_length": _is("loss_scale_factor"),
        "importance_sampling_ratio": lambda rule: {"importance_weight_cap": {"min(exp(proximal-behaviour), 1.5)": 1.5}[rule]},
        **_nothing("old_per_token_logps", "importance_sampling_level", "num_items_in_batch"),
    },
    "prime-rl": {
        "length_penalty": lambda _: {"norm_adv_by_std_in_grpo": False},
        "dppo_mask_low": _setting("tv_low"),
        "dppo_mask_high": _setting("tv_high"),
        "kl_tau": _setting("tv_kl_coef"),
        **_nothing("inference_logprobs", "rl_loss_fn", "adv_tau", "rl_scale"),
    },
    "VAGEN": {
        **{name: _is(name) for name in ("gamma", "lam", "high_level_gamma")},
        **_nothing("observation_tokens", "ignore_value"),
    },
    "verl-agent": _GIGPO,
    "DrMAS": _GIGPO,
}
_OF_PIECE: dict[tuple[str, str], dict[str, Meaning]] = {
    ("cispo", "verl"): {"clip_ratio_low": lambda low: {"clip_ratio_low": min(low, _NO_LOWER_BOUND)}},
    # The bound of the ratio itself, and none below.
    ("cispo", "TRL"): {
        "epsilon": lambda _: {"clip_ratio_low": _NO_LOWER_BOUND},
        "epsilon_high": lambda high: {"clip_ratio_high": high - 1.0},
    },
    ("no_concat_gae", "VAGEN"): {"gamma": _is("high_level_gamma")},
    ("dppo_tv", "verl"): {
        "clip_ratio_low": _setting("tv_low"),
        "clip_ratio_high": _setting("tv_high"),
        "clip_ratio_c": lambda _: {"settings": {"tv_kl_coef": 0.0}},
    },
    # -min(ratio, threshold) A log pi, tokens rejected by the ratio: a CISPO that is clipped above only.
    ("reinforce", "verl"): {
        "loss_type": lambda _: {},
        "rollout_is": lambda _: {"clip_ratio_low": _NO_LOWER_BOUND},
        "rollout_is_threshold": lambda cap: {"clip_ratio_high": cap - 1.0},
        "rollout_rs": lambda _: {"rejection_level": "token"},
        "rollout_rs_threshold": lambda bounds: dict(zip(("rejection_low", "rejection_high"), _ratios(bounds), strict=True)),
    },
    ("aggregation:token-mean", "verl"): {
        "loss_agg_mode": lambda mode: {"loss_agg_mode": {"token-sum": "token-mean"}.get(mode, mode)}
    },
}
"""Where a name means something else than in the other pieces."""
_VERL_LEVELS: dict[str, RejectionLevel] = {
    "token": "token",
    "seq_sum": "sequence-sum",
    "seq_mean": "sequence-mean",
    "seq_max": "sequence-max",
}


def changes(case: Case) -> Changes:
    """Raises KeyError for a setting that is not known."""
    meanings = _MEANINGS[case.peer] | _OF_PIECE.get((case.piece, case.peer), {})
    found: Changes = {"settings": {}}
    for name, value in case.settings.items():
        meant = meanings[name](value)
        found["settings"] |= meant.pop("settings", {})
        found |= meant
    return found


def rejections(case: Case) -> Iterator[Rejection]:
    """A token is left out that one of them leaves out."""
    settings = case.settings
    if case.peer == "AReaL":
        yield _areal_bounds(settings)
        return
    names, bounds = settings["rollout_rs"].split(","), str(settings["rollout_rs_threshold"]).split(",")
    for name, bound in zip(names, bounds * (len(names) if len(bounds) == 1 else 1), strict=True):
        level, _, kind = name.rpartition("_")
        yield _VERL_LEVELS[level], kind, *(_ratios(bound) if kind == "k1" else (0.0, float(bound)))


def _ratios(bounds: str) -> tuple[float, float]:
    """verl's bounds of k1, `lower_upper` or `upper` alone, are of behaviour / proximal; here they are of the inverse."""
    lower, _, upper = bounds.rpartition("_")
    return 1 / float(upper), 1 / float(lower) if lower else float(upper)


def _areal_bounds(settings: Mapping[str, Any]) -> Rejection:
    """Bounds of k1 are logarithms."""
    level: RejectionLevel = "token"
    if settings["level"] == "sequence":
        level = {"sum": "sequence-sum", "mean": "sequence-mean", "max": "sequence-max"}[settings["agg"]]  # type: ignore[assignment]
    high = settings["upper"]
    match settings["metric"]:
        case "ratio":
            return level, "k1", settings.get("lower", 0.0), high
        case "kl_k1":
            return level, "k1", exp(settings["lower"]), exp(high)
        case metric:
            return level, metric.removeprefix("kl_"), 0.0, high


def icepop(case: Case) -> Rejection | None:
    """verl's `rollout_is_threshold` of two bounds: weights outside are 0. These are of proximal / behaviour."""
    lower, _, upper = str(case.settings["rollout_is_threshold"]).rpartition("_")
    level: RejectionLevel = "token" if case.settings["rollout_is"] == "token" else "sequence-sum"
    return (level, "k1", float(lower), float(upper)) if lower else None
