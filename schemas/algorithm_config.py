"""Configures training: what is drawn, in which steps, how fast. WebGym's keys and defaults."""

from dataclasses import dataclass
from typing import Literal

from schemas.requirement import require

REPORTERS = ("wandb", "tensorboard")


@dataclass(frozen=True, kw_only=True)
class AlgorithmConfig:
    positive_samples_to_train: int = 1800
    """Steps of successful trajectories drawn for one iteration, without replacement; all when there are fewer."""
    recency_bias_power: float = 2.0
    """A sample of iteration i is drawn with weight (i + 1) ** power."""
    replay_iterations: int = 4
    """Latest iterations that samples are drawn from."""
    replay_balance: float = 0.0
    """0: steps are drawn as they are stored; 1: as many of every subdomain, however often it was solved; between them the
    weight of a step is further multiplied by (steps of its subdomain that are stored) ** -balance."""
    replay_capacity: int = 0
    """Steps that are kept to be drawn from; the oldest go first. 0: no limit."""
    val_split_ratio: float = 0.0
    """Share of the tasks, chosen by their names, that cloning does not train on: `val_loss` is measured on them, the mean
    negative log-likelihood of a token."""
    val_max_steps: int = 64
    """Latest steps of those tasks that `val_loss` is measured on; offline the first ones, which stay; 0: all."""
    augmentation: str = "none"
    """Of the losses `behaviour_cloning`, `reinforce`, `decoupled` and `truncated`: what becomes of a sample each time that it
    is trained on. `none`: nothing. `brightness`: its screenshots become a little brighter or darker."""
    min_answer_probability: float = 0.0
    """Of cloning: leave out steps whose whole answer the policy sampled with a smaller probability, at its temperature. What
    succeeded by luck, unlike what the policy meant, is not imitated; nor is what it hardly dared."""
    filter_same_screenshot: bool = True
    """Of cloning: leave out steps that did not change the screenshot. A policy gradient needs them: they are what failed."""
    cutoff_len: int = 16384
    """Longest sequence in tokens. Prompts leave their oldest rounds out so that a whole answer fits; no answer is cut."""
    per_device_train_batch_size: int = 3
    """Most samples of one micro-batch."""
    max_tokens_per_micro_batch: int = 0
    """Most tokens of one micro-batch, so that memory does not depend on how long samples are; a longer sample stands alone.
    0: as many as the samples have."""
    gradient_accumulation_steps: int = 4
    """Micro-batches of each device in one optimizer step."""
    learning_rate: float = 1e-6
    """Its height; `lr_scheduler_type` says what becomes of it."""
    weight_decay: float = 0.01
    """Of AdamW."""
    adam_beta2: float = 0.999
    """Of AdamW; the first moment's is 0.9."""
    max_grad_norm: float = 1.0
    """Gradients with a larger norm are scaled down to it."""
    num_train_epochs: int = 2
    """Times that an iteration trains on its samples."""
    warmup_steps: int = 30
    """Optimizer steps in which the learning rate rises to its height, once a run."""
    lr_scheduler_type: Literal["constant_with_warmup", "constant", "linear", "cosine"] = "constant_with_warmup"
    """What follows the warm-up. `constant` has none; `linear` and `cosine` fall until `lr_scheduler_steps`."""
    lr_scheduler_steps: int = 0
    """`linear` and `cosine`: optimizer steps of the run, warm-up included, after which the rate falls no further."""
    min_lr_ratio: float = 0.0
    """`linear` and `cosine`: share of the learning rate that is left then."""
    deepspeed_config_filename: str = "ds_config_b200_zero1.json"
    """One of the shipped DeepSpeed files, `ds_config_{b200,h100,cpu}_zero{1,2,3}.json`, or the path of your own."""
    report_to: str | tuple[str, ...] = "none"
    """Where figures and sampled episodes go besides the run's folder: none, wandb, tensorboard, or several of them (a list, or
    with commas)."""

    def __post_init__(self) -> None:
        for name in (
            "positive_samples_to_train",
            "replay_iterations",
            "cutoff_len",
            "per_device_train_batch_size",
            "gradient_accumulation_steps",
            "num_train_epochs",
            "learning_rate",
        ):
            require(getattr(self, name) > 0, f"algorithm_config.{name} is {getattr(self, name)}: write a number above 0")
        for name in ("recency_bias_power", "max_tokens_per_micro_batch", "weight_decay", "max_grad_norm", "warmup_steps"):
            require(getattr(self, name) >= 0, f"algorithm_config.{name} is {getattr(self, name)}: write 0 or more")
        require(
            0 <= self.adam_beta2 < 1, f"algorithm_config.adam_beta2 is {self.adam_beta2}: write 0 to below 1 (0.999 is usual)"
        )
        require(
            0 <= self.replay_balance <= 1,
            f"algorithm_config.replay_balance is {self.replay_balance}: write 0 (as they come) to 1 (subdomains alike)",
        )
        require(
            self.replay_capacity >= 0,
            f"algorithm_config.replay_capacity is {self.replay_capacity}: write 0 (no limit) or more",
        )
        require(
            0 <= self.val_split_ratio < 1,
            f"algorithm_config.val_split_ratio is {self.val_split_ratio}: write 0 (none) or a share below 1, as in 0.05",
        )
        require(self.val_max_steps >= 0, f"algorithm_config.val_max_steps is {self.val_max_steps}: write 0 (all) or more")
        require(
            0 <= self.min_answer_probability < 1,
            f"algorithm_config.min_answer_probability is {self.min_answer_probability}: write 0 (any) to below 1, as in 0.1",
        )
        self._require_schedule()
        for name in self.reporters:
            require(
                name in REPORTERS,
                f"algorithm_config.report_to has {name!r}: write none, {', '.join(REPORTERS)}, or a list of them",
            )

    def _require_schedule(self) -> None:
        falls = self.lr_scheduler_type in ("linear", "cosine")
        require(0 <= self.min_lr_ratio <= 1, f"algorithm_config.min_lr_ratio is {self.min_lr_ratio}: write 0 to 1")
        require(
            not falls or self.lr_scheduler_steps > self.warmup_steps,
            f"algorithm_config.lr_scheduler_type is {self.lr_scheduler_type}, and lr_scheduler_steps is "
            f"{self.lr_scheduler_steps}: write the optimizer steps until which it falls, more than warmup_steps",
        )
        for name in ("lr_scheduler_steps", "min_lr_ratio"):
            require(
                falls or getattr(self, name) == 0,
                f"algorithm_config.{name} is {getattr(self, name)}, and has no effect where lr_scheduler_type is "
                f"{self.lr_scheduler_type}: leave it out, or write linear or cosine",
            )

    @property
    def reporters(self) -> tuple[str, ...]:
        """Each once; empty for none."""
        given = self.report_to.split(",") if isinstance(self.report_to, str) else self.report_to
        return tuple(dict.fromkeys(name.strip() for name in given if name.strip() not in ("", "none")))
