"""RLinf's keys of the objective and of sampling."""

import math

from ops.config.elsewhere import measures as count
from ops.config.elsewhere import objective as aim
from ops.config.elsewhere import sampling
from ops.config.elsewhere.conversions import (
    KL_TYPES,
    TRAJECTORIES,
    as_number,
    as_whole,
    batches,
    choice,
    either,
    only_where,
    only_with,
    top_k,
)
from ops.config.elsewhere.row import Convert, Kind, Row, Said, Several, nothing, ours, same, under
from ops.config.elsewhere.written import Written, number, text, whole

_R, _A, _D = "runner.", "algorithm.", "data."
_IN_PARTS = "log-probabilities are computed in the micro-batches of training"
_KL = "write kl, abs, mse or low_var_kl for objective_config.kl_loss_type"
_BOUNDS = "leave it out: objective_config.dynamic_sampling leaves out groups whose rewards are all equal"
_TOKENS = "ratios and entropies are those of tokens"


def _kl_type(value: object, written: Written) -> object:
    found = KL_TYPES.get(text(value))
    if found is None:
        return Said(Kind.INSTEAD, _KL)
    counts = {"loss": "algorithm.kl_beta", "reward": "algorithm.reinpp_kl_beta"}
    values = {"loss": found, "reward": found.removesuffix("+")}
    said = {f"objective_config.kl_{where}_type": values[where] for where, beta in counts.items() if written.number(beta)}
    return Several(said) if said else Said(Kind.NOTHING, "neither kl_beta nor reinpp_kl_beta is above 0")


def _dual_clip(value: object, written: Written) -> object:
    """Losses of simulators that wait for training have none, but of one kind of model."""
    reads = written.says("algorithm.staleness_threshold") or str(written.get("actor.model.model_type")).startswith("gr00t_n1d")
    return number(value) if reads or not count.plays_simulators(written) else 0.0


def _bound(side: str) -> Convert:
    """Of the mean of a group's rewards: those just above 0 and just below 1 leave out groups that all fail or all succeed."""

    def convert(value: object, written: Written) -> object:
        least = 1 / count.group_size(written)
        amount = number(value) if side == "lower" else 1 - number(value)
        if 0 < amount < least or math.isclose(amount, least):
            return Said(Kind.SAME, "groups are left out where all rewards are equal")
        return Said(Kind.INSTEAD, f"{_BOUNDS}, not those whose mean is outside")

    return convert


_ALGORITHM: tuple[Row, ...] = (
    ours(_A + "group_size", "objective_config.group_size", "episodes of a task", count.group),
    ours(_A + "adv_type", "objective_config.adv_estimator", "`reinpp` is `reinforce_plus_plus`", aim.estimator, default="gae"),
    ours(
        _A + "loss_type",
        "objective_config.loss_type",
        "`ppo`, `actor` and `actor_critic` are `clipped`",
        aim.rlinf_loss,
        default="ppo",
    ),
    ours(
        _A + "importance_sampling_fix",
        "objective_config.loss_type",
        "true: `truncated`",
        either("truncated", Said(Kind.SAME, "the clipped loss weighs nothing")),
    ),
    ours(
        _A + "importance_sampling_clip",
        "objective_config.importance_weight_cap",
        "only with `importance_sampling_fix`",
        only_with(_A + "importance_sampling_fix", as_number),
    ),
    ours(_A + "behave_weight_threshold", "objective_config.behaviour_weight_cap", "of `decoupled`", as_number),
    ours(
        _A + "loss_agg_func",
        "objective_config.loss_agg_mode",
        "a sequence there is a whole episode: `seq-…` is `traj-…`",
        choice(TRAJECTORIES, "write one of token-mean and traj-mean-… for objective_config.loss_agg_mode"),
    ),
    ours(_A + "kl_beta", "objective_config.kl_loss_coef", "added to the loss", as_number),
    ours(
        _A + "kl_penalty_type",
        ("objective_config.kl_loss_type", "objective_config.kl_reward_type"),
        "of both, where they count",
        _kl_type,
    ),
    ours(_A + "reinpp_kl_beta", "objective_config.kl_reward_coef", "", as_number),
    *nothing(_A + "kl_penalty", "nothing reads it there: `kl_penalty_type` counts"),
    ours(_A + "clip_ratio_low", "objective_config.clip_ratio_low", "", as_number),
    ours(_A + "clip_ratio_high", "objective_config.clip_ratio_high", "", as_number),
    ours(
        _A + "ratio_clip_eps",
        ("objective_config.clip_ratio_low", "objective_config.clip_ratio_high"),
        "both, where they are not written",
        aim.clip_ratio,
    ),
    ours(
        _A + "clip_ratio_c",
        "objective_config.clip_ratio_c",
        "null: 0, off, as with simulators that wait for training",
        _dual_clip,
        default=3.0,
        null=0,
    ),
    ours(
        _A + "staleness_threshold",
        ("feeder_config.max_staleness", "feeder_config.mode"),
        "with mode `async`",
        lambda value, _: Several({"feeder_config.max_staleness": whole(value), "feeder_config.mode": "async"}),
    ),
    ours(_A + "entropy_bonus", "objective_config.entropy_coeff", "", as_number),
    *nothing(_A + "calculate_entropy", "entropy is told where objective_config.entropy_coeff asks for it"),
    ours(
        _A + "normalize_advantages", "objective_config.normalize_advantages", "`gae` and `reinpp` do so anyway", aim.whitened
    ),
    ours(_A + "early_stop_imp_ratio", "objective_config.early_stop_imp_ratio", "by sequence; null: 0, off", as_number, null=0),
    same(
        _A + "use_valid_token_scale",
        False,
        "losses are divided by whole batches' tokens or sequences",
        "write a value of objective_config.loss_agg_mode that divides as you want",
    ),
    ours(_A + "gamma", "objective_config.gamma", "", as_number),
    ours(_A + "gae_lambda", "objective_config.lam", "", as_number),
    *(ours(_A + name, "objective_config.critic.value_clip", "", as_number) for name in ("value_clip", "value_cliprange")),
    ours(_A + "critic_warmup_steps", "objective_config.critic.warmup_iterations", "", as_whole),
    ours(
        _A + "use_reinpp_baseline",
        "objective_config.adv_estimator",
        "true: `reinforce_plus_plus_baseline`",
        only_where(
            lambda written: written.get("algorithm.adv_type") == "reinpp",
            "that estimator is not reinpp",
            either("reinforce_plus_plus_baseline", "reinforce_plus_plus"),
        ),
    ),
    *nothing(under(_A[:-1], "use_critic use_value_loss"), "`gae` and `bi_level_gae` have a critic, the others none"),
    *nothing(_A + "huber_delta", "the critic's loss is half the squared error"),
    ours(_A + "update_epoch", "algorithm_config.num_train_epochs", "", as_whole, default=1),
    ours(
        _A + "filter_rewards",
        "objective_config.dynamic_sampling",
        "true: `drop`, groups whose rewards are all equal",
        either("drop", "off"),
    ),
    *(
        Row(
            _A + f"rewards_{bound}_bound",
            Kind.INSTEAD,
            (),
            f"{_BOUNDS}, as a bound {amounts} does",
            only_with(_A + "filter_rewards", _bound(bound)),
        )
        for bound, amounts in (("lower", "just above 0"), ("upper", "just below 1"))
    ),
    ours(
        _A + "max_num_gen_batches",
        "objective_config.max_refill",
        "batches an iteration may play",
        only_with(_A + "filter_rewards", batches),
    ),
    ours(
        _A + "reward_type",
        "objective_config.use_multi_turn_reward",
        "true: rewards stand at their steps; of `gae` and `reinpp`",
        only_where(aim.whitens, "that estimator compares whole episodes", lambda value, _: text(value) != "token_level"),
    ),
    ours(_A + "reward_coef", "objective_config.reward_scale", "", as_number),
    *nothing(under(_A[:-1], "logprob_type entropy_type"), _TOKENS),
    *nothing(
        under(_A[:-1], "advantage_mode loss_scales"),
        "objective_config.length_normaliser and loss_agg_mode weigh episodes and steps",
    ),
    ours(
        _A + "n_minibatches",
        "algorithm_config.gradient_accumulation_steps",
        "trajectories of a mini-batch, times the cap of steps, divided by micro-batch and ranks",
        count.accumulation_of_minibatches,
    ),
    ours(
        _A + "training_batch_size_per_gpu",
        "algorithm_config.per_device_train_batch_size",
        "a sample is one step of an episode",
        as_whole,
    ),
    *nothing(
        under(_A[:-1], "logprob_forward_micro_batch_size val_rollout_batch_size_per_gpu rollout_batch_size_per_gpu"), _IN_PARTS
    ),
    *nothing(
        (_A + "recompute_logprobs", "rollout.recompute_logprobs"),
        "`clipped` goes by the sampler's log-probabilities, `truncated` and `decoupled` by both",
    ),
    *nothing(_A + "shuffle_rollout", "samples are trained on in random order"),
    ours(
        _A + "rollout_epoch",
        "env_config.train_tasks_rollout_size",
        "times the simulators: the episodes of an iteration",
        count.rounds,
    ),
    *nothing(_A + "eval_rollout_epoch", "every test task is played env_config.test_tasks_repeat_times times"),
    *nothing(
        under(_A[:-1], "auto_reset ignore_terminations require_values"), "an episode ends when it is done, and the next begins"
    ),
    ours(_A + "length_params.max_new_token", "policy_config.max_new_tokens", "null: left open", as_whole),
    ours(_A + "length_params.max_length", count.LENGTH, "", count.length),
    *nothing(_A + "length_params.min_length", "an answer ends where the model ends it"),
)


def _sampling(group: str) -> tuple[Row, ...]:
    return (
        ours(group + "do_sample", "policy_config.temperature", "false: 0", sampling.greedy_unless_sampled),
        *(ours(group + name, "policy_config.temperature", "", as_number) for name in ("temperature", "temperature_train")),
        ours(group + "temperature_eval", "policy_config.eval_temperature", "", as_number),
        ours(group + "top_k", "policy_config.top_k", "-1: off, as numbers beyond any vocabulary", top_k),
        ours(group + "top_p", "policy_config.top_p", "", as_number),
        ours(group + "max_new_tokens", "policy_config.max_new_tokens", "of one step's answer", as_whole),
        same(
            group + "repetition_penalty",
            1.0,
            "no token is penalised",
            "leave it out: log-probabilities are those that training computes",
        ),
        *nothing(
            (group + "stop", group + "stop_token_ids", group + "min_new_tokens"), "an answer ends where the model ends it"
        ),
    )


OBJECTIVE = (*_ALGORITHM, *_sampling("algorithm.sampling_params."), *_sampling("rollout.sampling_params."))
