"""What verl's and RLinf's keys of the objective come to where one depends on another. Pure."""

from ops.config.elsewhere.conversions import as_number, only_where, only_with
from ops.config.elsewhere.measures import group_size
from ops.config.elsewhere.row import Convert, Kind, Said, Several
from ops.config.elsewhere.written import Written, number, text, truth, whole

_ACTOR = "actor_rollout_ref.actor."
_CORRECTION = "algorithm.rollout_correction."
ESTIMATORS = {
    **{
        name: name for name in ("gae", "grpo", "rloo", "remax", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "gigpo")
    },
    "grpo_vectorized": "grpo",
    "rloo_vectorized": "rloo",
    "bi_level_gae": "bi_level_gae",
    "masked_gae": "gae",
    "turn_wise_gae": "turn_gae",
    "no_concat_gae": "turn_gae",
    "reinpp": "reinforce_plus_plus",
    "reinpp_baseline": "reinforce_plus_plus_baseline",
    "grpo_dynamic": "grpo",
}
_NO_ESTIMATOR = (
    "write one of gae, bi_level_gae, turn_gae, gigpo, grpo, rloo, remax, reinforce_plus_plus, reinforce_plus_plus_baseline "
    "and reinforce_plus_plus_by_kind for objective_config.adv_estimator, or module:name of your own"
)
_LOSSES = {"vanilla": "clipped", "ppo_clip": "clipped", "gspo": "gspo", "cispo": "cispo", "gpg": "reinforce"}
RLINF_LOSSES = {
    "ppo": "clipped",
    "actor": "clipped",
    "actor_critic": "clipped",
    "decoupled_actor_critic": "decoupled",
    "decoupled_actor": "decoupled",
}
_NO_LOSS = Said(
    Kind.INSTEAD,
    "write clipped, decoupled, truncated, gspo, cispo or reinforce for objective_config.loss_type, or module:name of your "
    "own; clipped stands in for it",
    {"objective_config.loss_type": "clipped"},
)
_CRITICS = ("gae", "masked_gae", "bi_level_gae", "turn_wise_gae", "no_concat_gae")
NO_CRITIC = "that estimator has no critic"
_WHITENING = ("gae", "reinpp", "reinforce_plus_plus")
_REJECTED = {"token": "token", "seq_sum": "sequence-sum", "seq_mean": "sequence-mean", "seq_max": "sequence-max"}
_OLDER = {"token": "token_k1", "sequence": "seq_sum_k1", "geometric": "seq_mean_k1"}
_LEVELS = {"token": "token", "sequence": "sequence", "geometric": "sequence-mean"}


def estimator(value: object, written: Written) -> object:
    found = ESTIMATORS.get(text(value))
    if found == "reinforce_plus_plus" and written.true("algorithm.use_reinpp_baseline"):
        return "reinforce_plus_plus_baseline"
    if found is not None:
        return found
    other = "grpo" if group_size(written) > 1 else "reinforce_plus_plus"
    return Said(Kind.INSTEAD, f"{_NO_ESTIMATOR}; {other} stands in for it", {"objective_config.adv_estimator": other})


def loss(value: object, written: Written) -> object:
    """Importance weights between sampler and trainer make the clipped loss the truncated one."""
    found = _LOSSES.get(text(value))
    if found is None:
        return _NO_LOSS
    return "truncated" if found == "clipped" and written.get(f"{_CORRECTION}rollout_is") else found


def importance_weights(value: object, written: Written) -> object:
    if _LOSSES.get(str(written.get(f"{_ACTOR}policy_loss.loss_mode") or "vanilla")) != "clipped":
        return Said(
            Kind.INSTEAD, "leave it out: only objective_config.loss_type=truncated, decoupled and weighted_cloning weigh"
        )
    level = _LEVELS.get(text(value))
    if level is None:
        return Said(Kind.INSTEAD, "write token or sequence for objective_config.importance_weight_level")
    return Several({"objective_config.loss_type": "truncated", "objective_config.importance_weight_level": level})


def rejection(value: object, _: Written) -> object:
    """`seq_mean_k1` and its kin, and the names of older versions; of several, the first."""
    name, several, _rest = text(value).partition(",")
    level, _sign, kind = _OLDER.get(name.strip(), name.strip()).rpartition("_")
    if level not in _REJECTED or kind not in ("k1", "k2", "k3"):
        return Said(Kind.INSTEAD, "write a level for objective_config.rejection_level, and k1, k2 or k3 for rejection_kind")
    values = {"objective_config.rejection_level": _REJECTED[level], "objective_config.rejection_kind": kind}
    return Several(values, "the first of several" if several else "")


def rejection_bounds(value: object, written: Written) -> object:
    """One number c bounds k1 by 1 / c and c; `low_high` bounds it by both, which are of the inverse ratio there."""
    if not written.get(f"{_CORRECTION}rollout_rs"):
        return Said(Kind.NOTHING, "nothing is rejected without rollout_rs")
    parts = [number(part) for part in str(value).partition(",")[0].split("_")]
    if not 1 <= len(parts) <= 2 or min(parts) <= 0:
        return Said(Kind.INSTEAD, "write objective_config.rejection_low and rejection_high")
    if not str(written.get(f"{_CORRECTION}rollout_rs")).partition(",")[0].strip().endswith(("k2", "k3")):
        low, high = (1 / parts[0], parts[0]) if len(parts) == 1 else (1 / parts[1], 1 / parts[0])
        return Several(
            {"objective_config.rejection_low": low, "objective_config.rejection_high": high}, "of the inverse ratio"
        )
    return Several({"objective_config.rejection_high": parts[-1]})


def clip_ratio(value: object, written: Written) -> object:
    """Both sides, where they are not written one by one."""
    sides = {
        f"objective_config.clip_ratio_{side}": number(value)
        for side in ("low", "high")
        if not any(written.says(f"{group}clip_ratio_{side}") for group in (_ACTOR, "algorithm."))
    }
    return Several(sides) if sides else Said(Kind.NOTHING, "clip_ratio_low and clip_ratio_high are written")


def overlong(switch: str) -> Convert:
    """In effect unless its switch is written and false."""

    def convert(value: object, written: Written) -> object:
        if written.says(switch) and not written.true(switch):
            return 0
        return whole(value)

    return convert


def whitens(written: Written) -> bool:
    return str(written.get("algorithm.adv_type")) in _WHITENING


def whitened(value: object, written: Written) -> object:
    """RLinf's."""
    if not whitens(written):
        return truth(value)
    if truth(value):
        return Said(Kind.SAME, "that estimator's advantages are always whitened")
    return Said(Kind.INSTEAD, "leave it out: that estimator's advantages are always whitened here")


def has_critic(written: Written) -> bool:
    return str(written.get("algorithm.adv_estimator", "algorithm.adv_type")) in _CRITICS


of_the_critic = only_where(has_critic, NO_CRITIC, as_number)


def as_the_policy(*keys: str) -> Convert:
    """What the critic has of the policy."""

    def convert(value: object, written: Written) -> object:
        if any(written.get(key) == value for key in keys):
            return Said(Kind.SAME, "the critic has the policy's")
        return Said(Kind.INSTEAD, "leave it out: the critic has the policy's")

    return only_where(has_critic, NO_CRITIC, convert)


def rlinf_loss(value: object, written: Written) -> object:
    found = RLINF_LOSSES.get(text(value))
    if found is None:
        return _NO_LOSS
    return "truncated" if found == "clipped" and written.true("algorithm.importance_sampling_fix") else found


def where(switch: str, words: str) -> Convert:
    """What a person has to say where the switch is on."""
    return only_with(switch, lambda _value, _written: Said(Kind.INSTEAD, words))
