"""The table of what a judge's endpoint may answer at every stage, and what becomes of the judgement.

`tests.integration.test_unhappy_answers` tries every cell; `python -m tests.judge_answers` writes docs/judge_answers.md.
"""

import enum
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schemas.messages import Verdict
from tests.endpoint_replies import (
    HANG,
    RESET,
    Reply,
    Said,
    broken_body,
    filtered,
    html_page,
    no_choices,
    no_content,
    rate_limited,
    refused_by_filter,
    says,
    server_error,
    truncated,
    verdict,
)

PAGE = Path(__file__).parents[1] / "docs" / "judge_answers.md"
MAX_ANSWERS: Final = 2
"""As configured in the test; the default is 4."""


class Asking(enum.StrEnum):
    """The questions in the order in which they are asked, as calls and accounts name them."""

    BLOCKING = "blocking"
    KEYPOINT = "keypoint"
    CRITERION_B = "criterion_b"
    CRITERION_A = "criterion_a"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Words:
    """The verdict that lets the judging go on to a success, and the other one."""

    good: str
    bad: str


WORDS: Final[Mapping[Asking, Words]] = {
    Asking.BLOCKING: Words("NOT_BLOCKED", "BLOCKED"),
    Asking.KEYPOINT: Words("NEEDED", "NOT_NEEDED"),
    Asking.CRITERION_B: Words("SUCCESS", "FAILURE"),
    Asking.CRITERION_A: Words("SUCCESS", "FAILURE"),
    Asking.REFERENCE: Words("SUCCESS", "FAILURE"),
}


@dataclass(frozen=True, slots=True)
class Expected:
    """Of a judgement."""

    verdict: Verdict
    reward: float | None
    stage: str
    """The last one that has a verdict in it; empty: none has."""
    error: str = ""
    num_requests: int = 1
    """About this question, as counted at the endpoint; 0: as many as fit into the patience."""


_STAGES: Final = ("", "blocking", "answer", "keypoints", "criterion_b", "criterion_a_1", "reference")
_LAST_BEFORE: Final[Mapping[Asking, str]] = {
    Asking.BLOCKING: "",
    Asking.KEYPOINT: "answer",
    Asking.CRITERION_B: "keypoints",
    Asking.CRITERION_A: "criterion_b",
    Asking.REFERENCE: "criterion_a_1",
}
_FAILED: Final[Mapping[Asking, Expected]] = {
    Asking.BLOCKING: Expected(Verdict.EXCLUDED, None, "blocking"),
    # A picture that is no evidence: the last one always is, and the judging goes on.
    Asking.KEYPOINT: Expected(Verdict.SUCCESS, 1.0, "reference"),
    Asking.CRITERION_B: Expected(Verdict.FAILURE, 0.0, "criterion_b"),
    Asking.CRITERION_A: Expected(Verdict.FAILURE, 0.0, "criterion_a_1"),
    Asking.REFERENCE: Expected(Verdict.FAILURE, 0.0, "reference"),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One way to answer a question: the replies in turn, the last of which repeats."""

    name: str
    replies: Callable[[Words], tuple[Reply, ...]]
    becomes: str
    """`good`, `bad`, or the reason of the error with `{stage}` in it; everything behind `…` differs from run to run."""
    num_requests: int = 1
    stalls: bool = False
    """Keeps its endpoint busy: other questions would wait for it."""

    def expected(self, asking: Asking) -> Expected:
        match self.becomes:
            case "good":
                return Expected(Verdict.SUCCESS, 1.0, "reference", num_requests=self.num_requests)
            case "bad":
                failed = _FAILED[asking]
                return Expected(failed.verdict, failed.reward, failed.stage, num_requests=self.num_requests)
            case reason:
                error = reason.replace("{stage}", asking.value).replace("{good}", WORDS[asking].good)
                error = error.replace("{bad}", WORDS[asking].bad)
                return Expected(Verdict.ERROR, None, _LAST_BEFORE[asking], error, self.num_requests)


def _object(word: str, reasoning: str = "it is so") -> str:
    return json.dumps({"reasoning": reasoning, "verdict": word})


def _repeated(reply: Callable[[Words], Reply]) -> Callable[[Words], tuple[Reply, ...]]:
    return lambda words: (reply(words),)


def _no_verdict(reason: str) -> str:
    return f"{{stage}}: {MAX_ANSWERS} answers hold no verdict, the last: {reason}"
