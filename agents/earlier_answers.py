"""The thinking in an answer: whether it ended, and what is kept where the answer stands in a prompt as a turn of its own."""

import re

from schemas.context_config import ContextConfig
from schemas.model_config import ModelConfig

OPENING, CLOSING = "<think>", "</think>"
_CALL = re.compile(r"<tool_call>.*?(?:</tool_call>|\Z)", re.DOTALL)


def kept_of(response: str, context: ContextConfig, model: ModelConfig) -> str:
    """By `context_config.history`; without it, all of an answer but the thinking of a model that thinks."""
    match context.history:
        case "thinking":
            return with_opening(response)
        case "response":
            return without_thinking(response)
        case "action":
            said = without_thinking(response)
            return "\n".join(_CALL.findall(said)) or said
        case _:
            return without_thinking(response) if model.model_type == "qwen3-think" else response


def ends_thinking(response: str, model: ModelConfig) -> bool:
    """Whether an answer has the end of the thinking that its model begins with."""
    return model.model_type != "qwen3-think" or CLOSING in response


def with_opening(response: str) -> str:
    """Puts the tag back that begins a `<think>` block, where it stood in the prompt."""
    head, closed, _ = response.partition(CLOSING)
    return f"{OPENING}\n{response}" if closed and OPENING not in head else response


def without_thinking(response: str) -> str:
    """Removes `<think>` blocks, also one whose opening tag stood in the prompt, or one that was never closed."""
    head, closed, rest = response.partition(CLOSING)
    said, *blocks = (rest if closed and OPENING not in head else response).split(OPENING)
    return "".join((said, *(block.partition(CLOSING)[2] for block in blocks))).strip()
