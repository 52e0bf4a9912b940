"""Prompts that leave room for the answer: the oldest rounds are left out, an answer is never cut.

So a step that was sampled fits into training as it is (`algorithm_config.cutoff_len`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Tried:
    request: GenerationRequest
    tokens: list[int]
    length: int


def fitted(request: GenerationRequest, counter: Counter, num_tokens: int) -> tuple[GenerationRequest, list[int]]:
    """The request with as few rounds left out as make its prompt fit into `num_tokens`; its tokens, one per screenshot.

    A long prompt takes tens of milliseconds, so the number is bracketed: at most 14 prompts for a hundred rounds. That counts
    on a round being longer than the line that is left of it. Where a line is longer, as of a page with a long title, what is
    chosen fits and one round more does not; several more might.

    Raises:
        PromptTooLong: it fits with no number of rounds.
    """

    def without(by: int) -> _Tried | None:
        shorter = request.shorter(by) if by else request
        if shorter is None:
            return None
        tokens = counter.prompt(shorter.messages)
        return _Tried(shorter, tokens, counter.length(tokens, shorter.screenshots))

    found: _Tried | None = None
    too_few, enough, length = -1, None, 0
    while enough is None or enough - too_few > 1:
        by = max(too_few + 1, 2 * too_few) if enough is None else (too_few + enough) // 2
        tried = without(by)
        if tried is None or tried.length <= num_tokens:
            found, enough = tried, by  # or there are not so many
        else:
            too_few, length = by, tried.length
    if found is None:
        fewer = filter(None, map(without, range(too_few)))
        found = next((tried for tried in fewer if tried.length <= num_tokens), None)
    if found is None:
        raise PromptTooLong(
            f"the prompt of step {request.observation.step} of {request.observation.episode} has {length} tokens without "
            f"any earlier round, and {num_tokens} fit beside an answer: raise policy_config.max_model_len and "
            "algorithm_config.cutoff_len, lower policy_config.max_new_tokens, or show less of a page"
        )
    return found.request, found.tokens
