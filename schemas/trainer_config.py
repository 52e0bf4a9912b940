"""Configures the trainer: the engine, the checkpoints that stay, the guards, what a machine gives to it."""

from dataclasses import dataclass, field
from typing import Literal

from schemas.lora_config import LoraConfig
from schemas.requirement import require

FREEZABLE = ("vision", "projector")
"""The screenshot encoder, and what connects it to the language model."""


@dataclass(frozen=True, kw_only=True)
class TrainerConfig:
    engine: Literal["deepspeed", "simulated"] = "deepspeed"
    """`simulated`: nothing is learnt and checkpoints hold a counter, see `simulation_config`."""
    max_mismatch_k3: float = 0.01
    """KL divergence of the sampler's distribution from the trainer's, in nats (`mismatch_k3`), beyond which the run stops."""
    max_mismatch_far: float = 0.02
    """The same of the share of tokens whose probability is more than twice, or less than half, the sampler's."""
    mismatch_samples: int = 32
    """Samples of the current version that each iteration compares; 0: none."""
    stored_version: int = -1
    """Offline: the policy version of the stored episodes that `policy_config.base_model` is; only its samples are compared,
    before the first update. -1: none. `millrace replay` finds it by the hashes of the weights."""
    keep_checkpoints: int = 3
    """Latest checkpoints kept on disk, at least two; older ones are deleted, except two at most that the guard may need."""
    keep_every: int = 0
    """Every so many versions one is kept for good; 0: none."""
    save_every: int = 1
    """Every so many versions one has the optimizer's state, six times as large as what policies load. Training that was killed
    goes on from the newest version's weights with the newest such state."""
    save_minutes: float = 0.0
    """A version has it too when the last one that has it is so old; 0: by number alone."""
    seed: int = 0
    """Of the order of samples, of what the replay buffer draws, of new adapters and their dropout."""
    torch_threads: int = 0
    """CPU threads of one training process; 0: one on machines of up to four cores (others need them), else torch's choice."""
    screenshot_cache_mb: int = 512
    """Memory for decoded screenshots that are kept between iterations."""
    peak_tflops: float = 0.0
    """TFLOP/s of one device at the training's precision, which MFU is measured against; 0: a known GPU's, none on a CPU."""
    lora: LoraConfig = field(default_factory=LoraConfig)
    freeze: tuple[str, ...] = ()
    """Parts of the policy that stay as they are: `vision`, the screenshot encoder, and `projector`, which connects it to the
    language model. They have no optimizer state, and are published unchanged."""
    guard_batches: int = 3
    """Batches in a row, each far worse than the best of the last 100 that were not, after which training returns to the last
    good version; 0: never. Online only."""
    guard_parse_rate: float = 0.5
    """A batch is far worse when its parse rate is below this share of the best batch's."""
    guard_success: float = 0.25
    """The same of success."""
    guard_lr_factor: float = 0.5
    """The learning rate is multiplied by this at every return, until 100 batches since the last one were not far worse."""
    guard_max_returns: int = 2
    """Returns, after which the next collapse stops the run. Once 100 batches since the last one were not far worse, they are
    counted anew."""

    def __post_init__(self) -> None:
        for name in ("max_mismatch_k3", "max_mismatch_far"):
            require(getattr(self, name) > 0, f"trainer_config.{name} is {getattr(self, name)}: write a number above 0")
        require(
            self.stored_version >= -1,
            f"trainer_config.stored_version is {self.stored_version}: write a version, or -1 for none",
        )
        require(self.save_every >= 1, f"trainer_config.save_every is {self.save_every}: write 1 or more")
        for name in (
            "save_minutes",
            "mismatch_samples",
            "keep_checkpoints",
            "keep_every",
            "seed",
            "torch_threads",
            "screenshot_cache_mb",
            "peak_tflops",
            "guard_batches",
            "guard_max_returns",
        ):
            require(getattr(self, name) >= 0, f"trainer_config.{name} is {getattr(self, name)}: write 0 or more")
        for part in self.freeze:
            require(part in FREEZABLE, f"trainer_config.freeze names {part!r}: write some of {', '.join(FREEZABLE)}")
        require(
            not (self.freeze and self.lora.active),
            f"trainer_config.freeze is {list(self.freeze)}, and where adapters are trained all weights of the model stay as "
            "they are: leave it out, and choose trainer_config.lora.targets",
        )
        for name in ("guard_parse_rate", "guard_success"):
            require(0 <= getattr(self, name) < 1, f"trainer_config.{name} is {getattr(self, name)}: write 0 to below 1")
        require(
            0 < self.guard_lr_factor <= 1, f"trainer_config.guard_lr_factor is {self.guard_lr_factor}: write above 0, up to 1"
        )

    @property
    def trains_vision(self) -> bool:
        """Whether gradients reach what sees the screenshots."""
        return self.lora.adapts_screenshots if self.lora.active else "vision" not in self.freeze
