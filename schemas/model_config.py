"""Configures the kind of model that the policy is, and how it is prompted."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    model_type: Literal["qwen3-instruct", "qwen3-think"] = "qwen3-instruct"
    """`qwen3-think`: the `<think>` blocks of older rounds are not shown to the model again."""
    prompt_version: str = "vanilla"
    """`vanilla`: Action, tool_call. `complete`: Memory, Progress, Intention, Action, tool_call. `openwebrl`: think, then any
    number of calls; `openwebrl_xml`: those as Qwen3.5 writes them. A path that ends in `.txt`: a system prompt of your own,
    with `$definition` where the tool goes, and `$example` for a call of it."""
    prompt_texts: dict[str, str] = field(default_factory=dict)
    """What the text file of `prompt_version` held when the run was created, by its path as it is written there. Put in where a
    configuration is loaded; a text that stands here is taken in place of the file."""

    @property
    def prompt_text(self) -> str:
        """Of a system prompt of one's own."""
        return self.prompt_texts.get(self.prompt_version, "")
