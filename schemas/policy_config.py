"""Configures the engine that answers observations, and how it samples. WebGym's keys and defaults."""

from dataclasses import dataclass
from typing import Literal

from schemas.requirement import require


@dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    engine: Literal["vllm", "openai", "oracle", "simulated"] = "vllm"
    """`openai`: any OpenAI-compatible endpoint; `oracle`: the page's own scripted oracle, for demonstrations; `simulated`: no
    model at all, see `simulation_config`."""
    base_model: str = ""
    """The model that version 0 stands for: a folder, or a name of the Hugging Face Hub, as in `Qwen/Qwen3-VL-2B-Instruct` or
    `Qwen/Qwen3-VL-2B-Instruct@main`; of `openai`, the endpoint's name for it."""
    checkpoint_path: str = ""
    """Folder to load instead of `base_model` at the start."""
    max_new_tokens: int = 3072
    """Tokens of one answer at most."""
    temperature: float = 1.0
    """Of sampling; 0: always the likeliest token."""
    eval_temperature: float | None = None
    """Of sampling in evaluation episodes; null: `temperature`."""
    top_p: float = 0.99
    """Only the likeliest tokens that together have this probability are sampled; 1: all."""
    top_k: int = 2
    """Only so many of the likeliest tokens are sampled; -1: all."""
    min_p: float = 0.0
    """Only tokens with at least this share of the likeliest one's probability are sampled; 0: all."""
    max_model_len: int = 16384
    """Tokens, prompt and completion together. The oldest rounds are left out of a prompt until `max_new_tokens` fit behind it,
    within this and `algorithm_config.cutoff_len`."""
    max_num_seqs: int = 128
    """Requests that the engine works on at once; also how many steps one worker holds."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Number format of the engine's weights; `auto`: the model's own."""
    gpu_memory_utilization: float = 0.9
    """Share of the GPU's memory that the engine takes."""
    base_url: str = ""
    """Of the OpenAI-compatible endpoint."""
    api_key_env_var: str = "OPENAI_API_KEY"
    """Environment variable that holds the key for `base_url`."""
    vllm_timeout: float = 240.0
    """Seconds one answer may take."""
    history_mb: int = 1024
    """Memory (units of 2**20 bytes) for the episodes that a worker answered last: the screenshots of their last rounds, the
    words of all. One that is let go of is read again from its chain when it goes on."""

    def __post_init__(self) -> None:
        require(self.max_new_tokens > 0, f"policy_config.max_new_tokens is {self.max_new_tokens}: write a number above 0")
        require(self.history_mb > 0, f"policy_config.history_mb is {self.history_mb}: write a number above 0")
        require(self.temperature >= 0, f"policy_config.temperature is {self.temperature}: write 0 or more")
        require(
            self.eval_temperature is None or self.eval_temperature >= 0,
            f"policy_config.eval_temperature is {self.eval_temperature}: write 0 or more, or null for that of training",
        )
        require(0 < self.top_p <= 1, f"policy_config.top_p is {self.top_p}: write a number above 0 and at most 1")
        require(self.max_num_seqs > 0, f"policy_config.max_num_seqs is {self.max_num_seqs}: write a number above 0")

    def temperature_of(self, *, evaluation: bool) -> float:
        """That of the episodes of one split."""
        return self.eval_temperature if evaluation and self.eval_temperature is not None else self.temperature
