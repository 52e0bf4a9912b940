"""Configures the objective, by the names that verl, RLinf, AgentFly and VAGEN share."""

from dataclasses import dataclass, field
from typing import Literal

from schemas.requirement import require

KlType = Literal["kl", "abs", "mse", "low_var_kl", "kl+", "abs+", "low_var_kl+"]
WeightLevel = Literal["token", "sequence", "sequence-mean"]
RejectionLevel = Literal["none", "token", "sequence-sum", "sequence-mean", "sequence-max"]
RejectionKind = Literal["k1", "k2", "k3"]
Aggregation = Literal[
    "token-mean",
    "seq-mean-token-sum",
    "seq-mean-token-mean",
    "seq-mean-token-sum-norm",
    "traj-mean-token-sum",
    "traj-mean-token-mean",
    "traj-mean-token-sum-norm",
    "traj-mean-seq-sum",
]


@dataclass(frozen=True, kw_only=True)
class CriticConfig:
    """Of `gae`, `bi_level_gae` and `turn_gae`: a value model of its own, begun from `policy_config.base_model`."""

    learning_rate: float = 1e-5
    """Of the critic, with the policy's warm-up and schedule."""
    value_clip: float = 0.2
    """A value may move so far from the old one within an update; 0: as far as it likes."""
    warmup_iterations: int = 0
    """First iterations, in which only the critic learns."""

    def __post_init__(self) -> None:
        require(
            self.learning_rate > 0,
            f"objective_config.critic.learning_rate is {self.learning_rate}: write a number above 0",
        )
        for name in ("value_clip", "warmup_iterations"):
            require(getattr(self, name) >= 0, f"objective_config.critic.{name} is {getattr(self, name)}: write 0 or more")


@dataclass(frozen=True, kw_only=True)
class ObjectiveConfig:
    """What is optimised. By default WebGym's filtered behaviour cloning: successful episodes are imitated."""

    adv_estimator: str = "none"
    """`none`: steps of successful episodes are imitated, from a replay buffer. All others learn from every scored episode."""
    loss_type: str = "behaviour_cloning"
    """`weighted_cloning`: with an importance weight (RAFT++). `clipped`: PPO against the sampler. `decoupled`: PPO against the
    policy at the start of the update, with a capped weight (AReaL, AsyncWebRL). `truncated`: the same with a truncated one."""
    group_size: int = 1
    """Episodes of one task that are compared with each other. They are played as a group; `remax` plays one more, greedily."""
    dynamic_sampling: Literal["off", "drop", "refill"] = "off"
    """Groups whose rewards are all equal: trained on, left out, or left out and replaced by further ones."""
    max_refill: float = 4.0
    """`refill`: an iteration consumes at most so many times `env_config.train_tasks_rollout_size` episodes, and then trains on
    the groups it has."""

    success_replay: int = 0
    """Tasks whose newest success is kept: it joins a group of its task in which nobody succeeds (ARPO); 0: none."""

    norm_adv_by_std_in_grpo: bool = True
    """False: Dr. GRPO."""
    length_normaliser: Literal["none", "per_trajectory", "constant"] = "none"
    """What an episode's advantage is divided by: nothing, its number of steps, or `length_constant` (AsyncWebRL)."""
    length_constant: float = 10.0
    """Of `length_normaliser: constant`."""
    normalize_advantages: bool = False
    """Advantages get mean 0 and variance 1 over all trained tokens of the iteration."""
    pass_rate_weights: tuple[float, ...] = ()
    """Factors of a group's advantages by the share of its episodes that succeeded: none, up to a third, up to two thirds,
    more, all. Empty: all alike. OpenWebRL has 0.5, 1, 1.5, 1, 0.5, and draws tasks by them: `env_config.success_bands`."""
    reward_scale: float = 1.0
    """Factor of rewards."""
    reward_clip: float = 0.0
    """Then an episode's reward is held within so much of 0; 0: off."""
    overlong_buffer_len: int = 0
    """DAPO's soft punishment: answers cost that have more than `policy_config.max_new_tokens` less so many tokens; 0: off."""
    overlong_penalty_factor: float = 1.0
    """What an answer of `policy_config.max_new_tokens` costs of the reward, at its last token."""
    bootstrap_cut_off: bool = False
    """`gae`, `bi_level_gae` and `turn_gae`: an episode that the step cap ended is worth what the critic said last, not 0."""
    use_multi_turn_reward: bool = False
    """Rewards count at the steps that earned them (`Judgement.step_rewards`), not at the episode's end."""
    train_on_last_turn: bool = False
    """Only the last step of an episode is trained on."""
    gamma: float = 1.0
    """Discount from token to token; of `gigpo`, from step to step."""
    lam: float = 1.0
    """`gae`, `bi_level_gae` and `turn_gae`: how far errors of later values count."""
    high_level_gamma: float = 1.0
    """`bi_level_gae`, `turn_gae` and `reinforce_plus_plus` with its kin: discount from turn to turn, beside that of tokens."""
    negative_advantage_scale: float = 1.0
    """Factor of advantages below zero."""

    clip_ratio_low: float = 0.2
    """How far below 1 a ratio of probabilities counts."""
    clip_ratio_high: float = 0.2
    """How far above 1 it counts."""
    clip_ratio_c: float = 0.0
    """Dual clip: the loss of a token with a negative advantage is at most so many times its size; 0: off."""
    behaviour_weight_cap: float = 5.0
    """`decoupled`: tokens whose weight is above it are left out."""
    importance_weight_cap: float = 2.0
    """`truncated` and `weighted_cloning`: no weight is above it."""
    importance_weight_level: WeightLevel = "token"
    """Weights of single tokens, or one for a sequence: the product or the geometric mean of its tokens'."""
    proximal: Literal["forward", "interpolated"] = "forward"
    """The policy at the start of the update, of losses that ask for it: as a forward pass tells, or guessed from a token's age
    without one (A-3PO)."""
    rejection_level: RejectionLevel = "none"
    """Tokens or whole sequences that the sampler sees too differently contribute nothing: judged by the token, or by the sum,
    the mean or the largest of its sequence."""
    rejection_kind: RejectionKind = "k1"
    """By what: docs/objectives.md has the formulas."""
    rejection_low: float = 0.0
    """`k1`: the ratio of both policies is at least so large."""
    rejection_high: float = 2.0
    """The ratio (`k1`) or the divergence (`k2`, `k3`) is at most so large."""
    early_stop_imp_ratio: float = 0.0
    """Sequences whose mean ratio is above it contribute nothing; 0: off."""
    entropy_coeff: float = 0.0
    """The loss is lowered by so many times the entropy."""
    kl_loss_coef: float = 0.0
    """The loss is raised by so many times the divergence from the reference."""
    kl_loss_type: KlType = "low_var_kl"
    """How that divergence is estimated: docs/objectives.md has the formulas."""
    kl_reward_coef: float = 0.0
    """Taken off every token's reward, times its divergence from the reference."""
    kl_reward_type: KlType = "kl"
    """How that divergence is estimated."""
    reference_model: str = ""
    """The model that divergences are measured from, as `policy_config.base_model` names one; empty: that one."""
    loss_agg_mode: Aggregation = "token-mean"
    """A sequence is one step, a trajectory all steps of an episode. `...-norm` divides by `loss_scale_factor` tokens."""
    loss_scale_factor: float = 1024.0
    """Of `seq-mean-token-sum-norm` and `traj-mean-token-sum-norm`."""
    critic: CriticConfig = field(default_factory=CriticConfig)
    settings: dict[str, float] = field(default_factory=dict)
    """Of an estimator or a loss of your own: what it has beside the keys above, by name."""

    def __post_init__(self) -> None:
        key = "objective_config."
        require(self.group_size >= 1, f"{key}group_size is {self.group_size}: write 1 or more")
        require(
            self.dynamic_sampling == "off" or self.group_size >= 2,
            f"{key}dynamic_sampling is {self.dynamic_sampling} without groups: write off, or a group_size of 2 or more",
        )
        require(self.max_refill >= 1, f"{key}max_refill is {self.max_refill:g}: write 1 (nothing is replaced) or more")
        require(
            len(self.pass_rate_weights) in (0, 5) and all(weight >= 0 for weight in self.pass_rate_weights),
            f"{key}pass_rate_weights is {list(self.pass_rate_weights)}: write five numbers of 0 or more (for groups in which "
            "none succeeded, up to a third, up to two thirds, more, all), or leave it out",
        )
        for name in ("gamma", "lam", "high_level_gamma"):
            require(0 <= getattr(self, name) <= 1, f"{key}{name} is {getattr(self, name)}: write 0 to 1")
        require(0 < self.clip_ratio_low < 1, f"{key}clip_ratio_low is {self.clip_ratio_low}: write a number between 0 and 1")
        require(self.clip_ratio_high > 0, f"{key}clip_ratio_high is {self.clip_ratio_high}: write a number above 0")
        require(
            self.clip_ratio_c == 0 or self.clip_ratio_c > 1,
            f"{key}clip_ratio_c is {self.clip_ratio_c}: write a number above 1 (3 is usual), or 0 for none",
        )
        require(
            not self.kl_reward_type.endswith("+"),
            f"{key}kl_reward_type is {self.kl_reward_type}: a reward has no gradient, write {self.kl_reward_type[:-1]}",
        )
        require(
            self.rejection_kind == "k1" or self.rejection_low == 0,
            f"{key}rejection_low is {self.rejection_low:g}, and {self.rejection_kind} has no lower bound: leave it out",
        )
        for name in (
            "length_constant",
            "behaviour_weight_cap",
            "importance_weight_cap",
            "loss_scale_factor",
            "rejection_high",
            "reward_scale",
        ):
            require(getattr(self, name) > 0, f"{key}{name} is {getattr(self, name)}: write a number above 0")
        for name in (
            "early_stop_imp_ratio",
            "entropy_coeff",
            "kl_loss_coef",
            "kl_reward_coef",
            "negative_advantage_scale",
            "rejection_low",
            "reward_clip",
            "success_replay",
            "overlong_buffer_len",
            "overlong_penalty_factor",
        ):
            require(getattr(self, name) >= 0, f"{key}{name} is {getattr(self, name)}: write 0 or more")
        require(
            self.needs_reference or not self.reference_model,
            f"{key}reference_model is {self.reference_model!r}, and nothing is measured from it: leave it out, or write a "
            "kl_loss_coef or kl_reward_coef above 0",
        )

    @property
    def imitates(self) -> bool:
        """Whether successful episodes are imitated, rather than all of them learnt from."""
        return self.adv_estimator == "none"

    @property
    def needs_reference(self) -> bool:
        return self.kl_loss_coef > 0 or self.kl_reward_coef > 0
