"""Configures the kind of model that the policy is, and how it is prompted."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    model_type: Literal["qwen3-instruct", "qwen3-think"] = "qwen3-instruct"
    """`qwen3-think`: the `<think>` blocks of older rounds are not shown to the model again."""
    prompt_version: str = "vanilla"
    """`vanilla`: Action, tool_call. `complete`: Memory, Progress, Intention, Action, tool_call."""
