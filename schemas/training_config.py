"""The configuration of training: what is optimised, how, on what, and where figures of it go.

`algorithm_config` has WebGym's keys and defaults; `objective_config` has the names that verl, RLinf, AgentFly and VAGEN share.
"""

from dataclasses import dataclass, field
from typing import Literal

from schemas.requirement import require

Estimator = Literal[
    "none", "grpo", "rloo", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "remax", "gae", "bi_level_gae"
]
LossType = Literal["behaviour_cloning", "weighted_cloning", "clipped", "decoupled", "truncated"]
KlType = Literal["kl", "abs", "mse", "low_var_kl"]
REPORTERS = ("wandb", "tensorboard")
Aggregation = Literal["token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"]


@dataclass(frozen=True, kw_only=True)
class AlgorithmConfig:
    positive_samples_to_train: int = 1800
    """Steps of successful trajectories drawn for one iteration, without replacement; all when there are fewer."""
    recency_bias_power: float = 2.0
    """A sample of iteration i is drawn with weight (i + 1) ** power."""
    replay_iterations: int = 4
    """Latest iterations that samples are drawn from."""
    replay_capacity: int = 0
    """Steps that are kept to be drawn from; the oldest go first. 0: no limit."""
    val_split_ratio: float = 0.0
    """Share of the tasks, chosen by their names, that cloning does not train on: `val_loss` is measured on them, the mean
    negative log-likelihood of a token."""
    filter_same_screenshot: bool = True
    """Leave out steps that did not change the picture."""
    cutoff_len: int = 16384
    """Longest sequence in tokens. Prompts leave their oldest rounds out so that a whole answer fits; no answer is cut."""
    per_device_train_batch_size: int = 3
    """Most samples of one micro-batch."""
    max_tokens_per_micro_batch: int = 0
    """Most tokens of one micro-batch, so that memory does not depend on how long samples are; a longer sample stands alone.
    0: as many as the samples have."""
    gradient_accumulation_steps: int = 4
    learning_rate: float = 1e-6
    weight_decay: float = 0.01
    adam_beta2: float = 0.999
    max_grad_norm: float = 1.0
    num_train_epochs: int = 2
    warmup_steps: int = 30
    """Optimizer steps, once a run."""
    lr_scheduler_type: Literal["constant_with_warmup"] = "constant_with_warmup"
    deepspeed_config_filename: str = "ds_config_b200_zero1.json"
    report_to: str | tuple[str, ...] = "none"
    """Where figures and sampled episodes go besides the run's folder: none, wandb, tensorboard, or several of them (a list, or
    with commas)."""

    def __post_init__(self) -> None:
        for name in ("positive_samples_to_train", "replay_iterations", "cutoff_len", "per_device_train_batch_size"):
            require(getattr(self, name) > 0, f"algorithm_config.{name} is {getattr(self, name)}: write a number above 0")
        require(
            self.max_tokens_per_micro_batch >= 0,
            f"algorithm_config.max_tokens_per_micro_batch is {self.max_tokens_per_micro_batch}: write 0 or more",
        )
        require(self.gradient_accumulation_steps > 0, "algorithm_config.gradient_accumulation_steps must be above 0")
        require(
            self.replay_capacity >= 0,
            f"algorithm_config.replay_capacity is {self.replay_capacity}: write 0 (no limit) or more",
        )
        require(
            0 <= self.val_split_ratio < 1,
            f"algorithm_config.val_split_ratio is {self.val_split_ratio}: write 0 (none) or a share below 1, as in 0.05",
        )
        require(self.learning_rate > 0, "algorithm_config.learning_rate must be above 0")
        for name in self.reporters:
            require(
                name in REPORTERS,
                f"algorithm_config.report_to has {name!r}: write none, {', '.join(REPORTERS)}, or a list of them",
            )

    @property
    def reporters(self) -> tuple[str, ...]:
        """Each once; empty for none."""
        given = self.report_to.split(",") if isinstance(self.report_to, str) else self.report_to
        return tuple(dict.fromkeys(name.strip() for name in given if name.strip() not in ("", "none")))


@dataclass(frozen=True, kw_only=True)
class CriticConfig:
    """Of `gae` and `bi_level_gae`: a value model of its own, begun from `policy_config.base_model`."""

    learning_rate: float = 1e-5
    value_clip: float = 0.2
    """A value may move so far from the old one within an update; 0: as far as it likes."""
    warmup_iterations: int = 0
    """First iterations, in which only the critic learns."""

    def __post_init__(self) -> None:
        require(self.learning_rate > 0, "objective_config.critic.learning_rate must be above 0")
        for name in ("value_clip", "warmup_iterations"):
            require(getattr(self, name) >= 0, f"objective_config.critic.{name} is {getattr(self, name)}: write 0 or more")


@dataclass(frozen=True, kw_only=True)
class ObjectiveConfig:
    """What is optimised. By default WebGym's filtered behaviour cloning: successful episodes are imitated."""

    adv_estimator: Estimator = "none"
    """`none`: steps of successful episodes are imitated, from a replay buffer. All others learn from every scored episode."""
    loss_type: LossType = "behaviour_cloning"
    """`weighted_cloning`: with an importance weight (RAFT++). `clipped`: PPO against the sampler. `decoupled`: PPO against the
    policy at the start of the update, with a capped weight (AReaL, AsyncWebRL). `truncated`: the same with a truncated one."""
    group_size: int = 1
    """Episodes of one task that are compared with each other. They are played as a group; `remax` plays one more, greedily."""
    dynamic_sampling: Literal["off", "drop", "refill"] = "off"
    """Groups whose rewards are all equal: trained on, left out, or left out and replaced by further ones."""
    max_refill: float = 4.0
    """`refill`: an iteration consumes at most so many times `env_config.train_tasks_rollout_size` episodes, and then trains on
    the groups it has."""

    norm_adv_by_std_in_grpo: bool = True
    """False: Dr. GRPO."""
    length_normaliser: Literal["none", "per_trajectory", "constant"] = "none"
    """What an episode's advantage is divided by: nothing, its number of steps, or `length_constant` (AsyncWebRL)."""
    length_constant: float = 10.0
    use_multi_turn_reward: bool = False
    """Rewards count at the steps that earned them (`Judgement.step_rewards`), not at the episode's end."""
    train_on_last_turn: bool = False
    """Only the last step of an episode is trained on."""
    gamma: float = 1.0
    lam: float = 1.0
    high_level_gamma: float = 1.0
    """`bi_level_gae`: discount from turn to turn."""
    negative_advantage_scale: float = 1.0
    """Factor of advantages below zero."""

    clip_ratio_low: float = 0.2
    clip_ratio_high: float = 0.2
    clip_ratio_c: float = 0.0
    """Dual clip: the loss of a token with a negative advantage is at most so many times its size; 0: off."""
    behaviour_weight_cap: float = 5.0
    """`decoupled`: tokens whose weight is above it are left out."""
    importance_weight_cap: float = 2.0
    """`truncated` and `weighted_cloning`: no weight is above it."""
    early_stop_imp_ratio: float = 0.0
    """Sequences whose mean ratio is above it contribute nothing; 0: off."""
    entropy_coeff: float = 0.0
    kl_loss_coef: float = 0.0
    kl_loss_type: KlType = "low_var_kl"
    kl_reward_coef: float = 0.0
    """Taken off every token's reward, times its divergence from the reference."""
    kl_reward_type: KlType = "kl"
    reference_model: str = ""
    """Folder of the model that divergences are measured from; empty: `policy_config.base_model`."""
    loss_agg_mode: Aggregation = "token-mean"
    """A sequence is one step. `seq-mean-token-sum-norm` divides by `loss_scale_factor` tokens."""
    loss_scale_factor: float = 1024.0
    critic: CriticConfig = field(default_factory=CriticConfig)

    def __post_init__(self) -> None:
        grouped = ("grpo", "rloo", "reinforce_plus_plus_baseline")
        key = "objective_config."
        require(self.group_size >= 1, f"{key}group_size is {self.group_size}: write 1 or more")
        require(
            self.adv_estimator not in grouped or self.group_size >= 2,
            f"{key}adv_estimator is {self.adv_estimator}, which compares episodes of one task, and {key}group_size is "
            f"{self.group_size}: write 2 or more (8 is usual)",
        )
        cloning = self.loss_type in ("behaviour_cloning", "weighted_cloning")
        require(
            cloning == (self.adv_estimator == "none"),
            f"{key}adv_estimator is {self.adv_estimator} and {key}loss_type is {self.loss_type}: cloning goes with none, the "
            "other losses (clipped, decoupled, truncated) with an estimator",
        )
        require(
            self.dynamic_sampling == "off" or self.group_size >= 2,
            f"{key}dynamic_sampling is {self.dynamic_sampling} without groups: write off, or a group_size of 2 or more",
        )
        require(self.max_refill >= 1, f"{key}max_refill is {self.max_refill:g}: write 1 (nothing is replaced) or more")
        for name in ("gamma", "lam", "high_level_gamma"):
            require(0 <= getattr(self, name) <= 1, f"{key}{name} is {getattr(self, name)}: write 0 to 1")
        require(0 < self.clip_ratio_low < 1, f"{key}clip_ratio_low is {self.clip_ratio_low}: write a number between 0 and 1")
        require(self.clip_ratio_high > 0, f"{key}clip_ratio_high is {self.clip_ratio_high}: write a number above 0")
        require(
            self.clip_ratio_c == 0 or self.clip_ratio_c > 1,
            f"{key}clip_ratio_c is {self.clip_ratio_c}: write a number above 1 (3 is usual), or 0 for none",
        )
        for name in ("length_constant", "behaviour_weight_cap", "importance_weight_cap", "loss_scale_factor"):
            require(getattr(self, name) > 0, f"{key}{name} is {getattr(self, name)}: write a number above 0")
        for name in (
            "early_stop_imp_ratio",
            "entropy_coeff",
            "kl_loss_coef",
            "kl_reward_coef",
            "negative_advantage_scale",
        ):
            require(getattr(self, name) >= 0, f"{key}{name} is {getattr(self, name)}: write 0 or more")

    @property
    def num_members(self) -> int:
        """Episodes that are admitted of every training task: its group, and the baseline of `remax` behind it."""
        return self.group_size + (self.adv_estimator == "remax")

    @property
    def imitates(self) -> bool:
        """Whether successful episodes are imitated, rather than all of them learnt from."""
        return self.adv_estimator == "none"

    @property
    def needs_critic(self) -> bool:
        return self.adv_estimator in ("gae", "bi_level_gae")

    @property
    def needs_reference(self) -> bool:
        return self.kl_loss_coef > 0 or self.kl_reward_coef > 0

    @property
    def needs_proximal(self) -> bool:
        """Whether the log-probabilities at the start of the update are used, besides the sampler's own."""
        return self.loss_type in ("decoupled", "truncated", "weighted_cloning") or self.kl_reward_coef > 0


LANGUAGE_LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""Linear layers of the language model."""
PICTURE_LAYERS = ("qkv", "proj", "linear_fc1", "linear_fc2")
"""Linear layers of the picture encoder and of what connects it to the language model."""


@dataclass(frozen=True, kw_only=True)
class LoraConfig:
    """Low-rank adapters: only they are trained and published, and policies put them on `policy_config.base_model`."""

    rank: int = 0
    """0: all weights are trained."""
    alpha: int = 32
    """What an adapter adds is scaled by alpha / rank."""
    dropout: float = 0.0
    """Of an adapter's input. Samplers have none, so what is trained differs a little from what was sampled; 0 is usual."""
    targets: tuple[str, ...] = LANGUAGE_LAYERS
    """Layers that get an adapter. `qkv`, `proj`, `linear_fc1` and `linear_fc2` are those of the picture encoder."""

    def __post_init__(self) -> None:
        key, known = "trainer_config.lora.", LANGUAGE_LAYERS + PICTURE_LAYERS
        require(0 <= self.rank <= 512, f"{key}rank is {self.rank}: write 1 to 512 (16 or 32 is usual), or 0 for no adapters")
        require(self.alpha >= 1, f"{key}alpha is {self.alpha}: write 1 or more (once or twice the rank is usual)")
        require(0 <= self.dropout < 1, f"{key}dropout is {self.dropout}: write 0, or a number below 1")
        require(len(self.targets) > 0, f"{key}targets is empty: write some of {', '.join(known)}")
        for name in self.targets:
            require(name in known, f"{key}targets names {name}: write some of {', '.join(known)}")

    @property
    def active(self) -> bool:
        return self.rank > 0

    @property
    def adapts_pictures(self) -> bool:
        """Whether what a picture looks like to the language model depends on the adapters."""
        return self.active and any(name in PICTURE_LAYERS for name in self.targets)


@dataclass(frozen=True, kw_only=True)
class TrainerConfig:
    engine: Literal["deepspeed", "simulated"] = "deepspeed"
    """`simulated`: nothing is learnt and checkpoints hold a counter, see `simulation_config`."""
    max_mismatch: float = 0.05
    """Mean absolute difference, in nats, of sampler and trainer log-probabilities at which the run stops."""
    mismatch_samples: int = 32
    """Samples of the current version that each iteration compares."""
    stored_version: int = -1
    """Offline: the policy version of the stored episodes that `policy_config.base_model` is; only its samples are compared,
    before the first update. -1: none. `millrace replay` finds it by the hashes of the weights."""
    keep_checkpoints: int = 3
    """Latest checkpoints kept on disk, at least two; older ones are deleted, except two at most that the guard may need."""
    keep_every: int = 0
    """Every so many versions one is kept for good; 0: none."""
    seed: int = 0
    torch_threads: int = 0
    """CPU threads of one training process; 0: one on machines of up to four cores (others need them), else torch's choice."""
    picture_cache_mb: int = 512
    """Memory for decoded pictures that are kept between iterations."""
    peak_tflops: float = 0.0
    """TFLOP/s of one device at the training's precision, which MFU is measured against; 0: a known GPU's, none on a CPU."""
    lora: LoraConfig = field(default_factory=LoraConfig)
    guard_batches: int = 3
    """Batches in a row, each far worse than the best so far, after which training returns to the last good version; 0: never.
    Online only."""
    guard_parse_rate: float = 0.5
    """A batch is far worse when its parse rate is below this share of the best batch's."""
    guard_success: float = 0.25
    """The same of success."""
    guard_lr_factor: float = 0.5
    """The learning rate is multiplied by this at every return."""
    guard_max_returns: int = 2
    """Returns in one run, after which the next collapse stops it."""

    def __post_init__(self) -> None:
        for name in ("keep_checkpoints", "keep_every", "guard_batches", "guard_max_returns"):
            require(getattr(self, name) >= 0, f"trainer_config.{name} is {getattr(self, name)}: write 0 or more")
        for name in ("guard_parse_rate", "guard_success"):
            require(0 <= getattr(self, name) < 1, f"trainer_config.{name} is {getattr(self, name)}: write 0 to below 1")
        require(
            0 < self.guard_lr_factor <= 1, f"trainer_config.guard_lr_factor is {self.guard_lr_factor}: write above 0, up to 1"
        )


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    run_name: str = ""
    """Of the wandb run, and its id: one of this name is continued. Empty: the run's name on the bus."""
    wandb_key_env_var: str = "WANDB_API_KEY"
    """Environment variable that holds the key; without it wandb writes its files offline."""
    wandb_mode: Literal["auto", "online", "offline", "disabled"] = "auto"
    """`auto`: online with a key, offline without."""
    project_name: str = "millrace"
    entity_name: str = ""
    table_every: int = 10
    """Versions from one page of sampled episodes to the next; 0: none."""
    table_episodes: int = 6
    """Episodes of the batch on such a page, half of them successes where there are any."""
    keep_tables: int = 20
    """Latest pages kept in the run's folder."""
    last_evaluation_s: float = 1800.0
    """A trainer that has finished waits so long for the evaluations that are still being played, to log them."""

    def __post_init__(self) -> None:
        for name in ("table_every", "last_evaluation_s"):
            require(getattr(self, name) >= 0, f"log_config.{name} is {getattr(self, name)}: write 0 or more")
        for name in ("table_episodes", "keep_tables"):
            require(getattr(self, name) >= 1, f"log_config.{name} is {getattr(self, name)}: write 1 or more")
