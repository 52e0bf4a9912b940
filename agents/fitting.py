"""Prompts that leave room for the answer: the oldest rounds are left out, an answer is never cut.

So a step that was sampled fits into training as it is (`algorithm_config.cutoff_len`).
"""

from collections.abc import Sequence
from typing import Protocol

from agents.engine import ChatMessage, GenerationRequest
from schemas.errors import PromptTooLong
from schemas.messages import Screenshot
from schemas.policy_config import PolicyConfig


class Counter(Protocol):
    """What is asked of a `PromptTokenizer`."""

    def prompt(self, messages: Sequence[ChatMessage]) -> list[int]: ...

    def length(self, tokens: Sequence[int], screenshots: Sequence[Screenshot]) -> int: ...


def max_prompt(policy: PolicyConfig, cutoff_len: int) -> int:
    """Tokens that a prompt may have, so that the longest answer still fits behind it."""
    return min(policy.max_model_len, cutoff_len) - policy.max_new_tokens


def fitted(request: GenerationRequest, counter: Counter, num_tokens: int) -> tuple[GenerationRequest, list[int]]:
    """The request with as few rounds left out as make its prompt fit into `num_tokens`; its tokens, one per screenshot.

    Raises:
        PromptTooLong: the current round alone does not fit.
    """
    while True:
        tokens = counter.prompt(request.messages)
        length = counter.length(tokens, request.screenshots)
        if length <= num_tokens:
            return request, tokens
        shorter = request.shorter()
        if shorter is None:
            raise PromptTooLong(
                f"the prompt of step {request.observation.step} of {request.observation.episode} has {length} tokens without "
                f"any earlier round, and {num_tokens} fit beside an answer: raise policy_config.max_model_len and "
                "algorithm_config.cutoff_len, lower policy_config.max_new_tokens, or show less of a page"
            )
        request = shorter
