"""Low-rank adapters, and which layers may have them."""

from dataclasses import dataclass

from schemas.requirement import require

LANGUAGE_LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""Linear layers of the language model."""
SCREENSHOT_LAYERS = ("qkv", "proj", "linear_fc1", "linear_fc2")
"""Linear layers of the screenshot encoder and of what connects it to the language model."""


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
    """Layers that get an adapter. `qkv`, `proj`, `linear_fc1` and `linear_fc2` are those of the screenshot encoder."""

    def __post_init__(self) -> None:
        key, known = "trainer_config.lora.", LANGUAGE_LAYERS + SCREENSHOT_LAYERS
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
    def adapts_screenshots(self) -> bool:
        """Whether what a screenshot looks like to the language model depends on the adapters."""
        return self.active and any(name in SCREENSHOT_LAYERS for name in self.targets)
