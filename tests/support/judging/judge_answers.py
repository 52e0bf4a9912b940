"""The table of what a judge's endpoint may answer at every stage, and what becomes of the judgement.

`tests.integration.test_unhappy_answers` tries every cell; `python -m tests.support.judging.judge_answers` writes
docs/judge_answers.md.
"""

import enum
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schemas.messages import Verdict
from tests.support.judging.endpoint_replies import (
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

PAGE = Path(__file__).parents[3] / "docs" / "judge_answers.md"
MAX_ANSWERS: Final = 2
"""As configured in the test; the default is 4."""
PATIENCE_S: Final = 0.8
"""Likewise; the default is 600."""


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


MODELS: Final[Mapping[Asking, str]] = {
    Asking.BLOCKING: "blocking-model",
    Asking.KEYPOINT: "keypoint-model",
    Asking.CRITERION_B: "evaluation-model",
    Asking.CRITERION_A: "evaluation-model",
    Asking.REFERENCE: "evaluation-model",
}
ENDPOINT: Final = "https://endpoint/v1"
"""Stands in errors for the address of the test's endpoint."""


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


_LAST_BEFORE: Final[Mapping[Asking, str]] = {
    Asking.BLOCKING: "",
    Asking.KEYPOINT: "answer",
    Asking.CRITERION_B: "keypoint",
    Asking.CRITERION_A: "criterion_b",
    Asking.REFERENCE: "criterion_a_1",
}
_FAILED: Final[Mapping[Asking, Expected]] = {
    Asking.BLOCKING: Expected(Verdict.EXCLUDED, None, "blocking"),
    # A screenshot that is no evidence: the last one always is, and the judging goes on.
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
    """`good`, `bad`, or the reason of the error, with `{stage}`, `{model}` and `{choice}` of words left open."""
    num_requests: int = 1
    stalls: bool = False
    """Keeps its endpoint busy: other questions would wait for it."""

    @property
    def hangs(self) -> bool:
        return HANG in self.replies(Words("", ""))

    @property
    def endless(self) -> bool:
        """The endpoint fails for as long as it is asked."""
        return self.num_requests == 0

    def expected(self, asking: Asking) -> Expected:
        match self.becomes:
            case "good":
                return Expected(Verdict.SUCCESS, 1.0, "reference", num_requests=self.num_requests)
            case "bad":
                failed = _FAILED[asking]
                return Expected(failed.verdict, failed.reward, failed.stage, num_requests=self.num_requests)
            case reason:
                words = WORDS[asking]
                # As the question's schema lists them.
                choice = f"{words.bad} or {words.good}" if asking is Asking.BLOCKING else f"{words.good} or {words.bad}"
                error = reason.format(stage=asking.value, model=MODELS[asking], choice=choice)
                return Expected(Verdict.ERROR, None, _LAST_BEFORE[asking], error, self.num_requests)


def _object(word: str, reasoning: str = "it is so") -> str:
    return json.dumps({"reasoning": reasoning, "verdict": word})


def _repeated(reply: Callable[[Words], Reply]) -> Callable[[Words], tuple[Reply, ...]]:
    return lambda words: (reply(words),)


def _no_verdict(reason: str) -> str:
    return f"{{stage}}: {MAX_ANSWERS} answers hold no verdict, the last: {reason}"


def _no_answer(reason: str) -> str:
    return f"{{stage}}: {ENDPOINT} (model '{{model}}') gave no answer within {PATIENCE_S:g} s of its first failure: {reason}"


_NOT_JSON: Final = "the answer is not one JSON object: "
_CUT: Final = '{"reasoning": "it is'

CASES: Final = (
    Case("the verdict that is hoped for", _repeated(lambda words: says(_object(words.good))), "good"),
    Case("the other verdict", _repeated(lambda words: says(_object(words.bad))), "bad"),
    Case("the verdict in a ```json fence", _repeated(lambda words: says(f"```json\n{_object(words.good)}\n```")), "good"),
    Case(
        "the verdict behind one `<think>` block",
        _repeated(lambda words: says(f"<think>\nIs it? {_object(words.bad)}\n</think>\n\n{_object(words.good)}")),
        "good",
    ),
    Case(
        "a malformed verdict, then a good one",
        lambda words: (says(words.good), says(_object(words.good))),
        "good",
        num_requests=2,
    ),
    Case(
        "no verdict in the object",
        _repeated(lambda _: verdict(reasoning="it is so")),
        _no_verdict("the object has the fields ['reasoning'] instead of reasoning and verdict"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "an empty verdict",
        _repeated(lambda _: says(_object(""))),
        _no_verdict("the verdict is '' instead of {choice}"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "the bare word of success",
        _repeated(lambda words: says(words.good)),
        _no_verdict(_NOT_JSON + "Expecting value: line 1 column 1 (char 0)"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "the bare word of failure",
        _repeated(lambda words: says(words.bad)),
        _no_verdict(_NOT_JSON + "Expecting value: line 1 column 1 (char 0)"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "a verdict inside prose",
        _repeated(lambda words: says(f"I find: {_object(words.good)}")),
        _no_verdict(_NOT_JSON + "Expecting value: line 1 column 1 (char 0)"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "a verdict inside a `<think>` block alone",
        _repeated(lambda words: says(f"<think>{_object(words.good)}</think>")),
        _no_verdict("the answer is empty"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "a thought that quotes the end of a thought, with a verdict behind it",
        _repeated(lambda words: says(f"<think>It says </think>{_object(words.good)}</think>{_object(words.bad)}")),
        _no_verdict(_NOT_JSON + "Expecting value: line 1 column 1 (char 0)"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "cut off at the limit of tokens",
        _repeated(lambda _: truncated(_CUT)),
        _no_verdict(f"an answer was cut off after {len(_CUT)} characters"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "cut off, though what came is a whole verdict",
        _repeated(lambda words: truncated(_object(words.good, "it is so".ljust(40 - len(words.good))))),
        _no_verdict(f"an answer was cut off after {40 + len(_object('', ''))} characters"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "ends in the middle, and says that it is complete",
        _repeated(lambda _: says(_CUT)),
        _no_verdict(_NOT_JSON + "Unterminated string starting at: line 1 column 15 (char 14)"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "no JSON: single quotes",
        _repeated(lambda words: says(str({"reasoning": "it is so", "verdict": words.good}))),
        _no_verdict(_NOT_JSON + "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "two verdicts one after the other",
        _repeated(lambda words: says(_object("") + _object(words.good))),
        _no_verdict(f"{_NOT_JSON}Extra data: line 1 column {len(_object('')) + 1} (char {len(_object(''))})"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "an array around the verdict",
        _repeated(lambda words: says(f"[{_object(words.good)}]")),
        _no_verdict("the answer is JSON, but a list instead of an object"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "one field too many",
        _repeated(lambda words: verdict(reasoning="it is so", verdict=words.good, reward=1)),
        _no_verdict("the object has the fields ['reasoning', 'reward', 'verdict'] instead of reasoning and verdict"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "a field twice",
        _repeated(lambda words: says(f'{{"reasoning": "", "verdict": "{words.bad}", "verdict": "{words.good}"}}')),
        _no_verdict("a field stands twice in the object"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "a word that is no verdict of this question",
        _repeated(lambda _: says(_object("MAYBE"))),
        _no_verdict("the verdict is 'MAYBE' instead of {choice}"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "true instead of a word",
        _repeated(lambda _: verdict(reasoning="it is so", verdict=True)),
        _no_verdict("the verdict is True instead of {choice}"),
        num_requests=MAX_ANSWERS,
    ),
    Case("empty content", _repeated(lambda _: says("")), _no_verdict("an answer was empty"), num_requests=MAX_ANSWERS),
    Case("no content", _repeated(lambda _: no_content()), _no_verdict("an answer was empty"), num_requests=MAX_ANSWERS),
    Case("white space", _repeated(lambda _: says(" \n ")), _no_verdict("an answer was empty"), num_requests=MAX_ANSWERS),
    Case("no choices", _repeated(lambda _: no_choices()), _no_verdict("an answer was empty"), num_requests=MAX_ANSWERS),
    Case(
        "the filter kept the answer back",
        _repeated(lambda _: filtered()),
        _no_verdict("the endpoint's content filter kept the answer back"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "the filter stopped in the middle of a good verdict",
        _repeated(lambda words: Said(_object(words.good), finish_reason="content_filter")),
        _no_verdict("the endpoint's content filter kept the answer back"),
        num_requests=MAX_ANSWERS,
    ),
    Case(
        "the filter refused the question (400)",
        _repeated(lambda _: refused_by_filter()),
        _no_verdict("the endpoint's content filter kept the answer back"),
        num_requests=MAX_ANSWERS,
    ),
    Case("429 with retry-after, then good", lambda words: (rate_limited("0.02"), says(_object(words.good))), "good", 2, True),
    Case(
        "429 with retry-after, for ever",
        _repeated(lambda _: rate_limited("0.02")),
        _no_answer("429 rate_limit_exceeded (no)"),
        0,
        True,
    ),
    Case("500, then good", lambda words: (server_error(retry_after_ms=5), says(_object(words.good))), "good", 2, True),
    Case("500 for ever", _repeated(lambda _: server_error(retry_after_ms=5)), _no_answer("500"), 0, True),
    Case("no answer within the time limit", _repeated(lambda _: HANG), _no_answer("no answer in time"), 0, True),
    Case("no answer within the time limit, then good", lambda words: (HANG, says(_object(words.good))), "good", 2, True),
    Case("a page of HTML with 502", _repeated(lambda _: html_page()), _no_answer("502"), 0, True),
    Case("a page of HTML with 200", _repeated(lambda _: html_page(200)), _no_answer("a reply that is no completion"), 0, True),
    Case(
        "a response that ends in the middle",
        _repeated(lambda _: broken_body()),
        _no_answer("a reply that is no completion"),
        0,
        True,
    ),
    Case("the connection is reset", _repeated(lambda _: RESET), _no_answer("no connection"), 0, True),
    Case("the connection is reset, then good", lambda words: (RESET, says(_object(words.good))), "good", 2, True),
)
UNHAPPY: Final = frozenset(case.name for case in CASES if case.becomes not in ("good", "bad"))


def cells() -> Iterator[tuple[Case, Asking, Expected]]:
    for case in CASES:
        for asking in Asking:
            yield case, asking, case.expected(asking)


_TITLES: Final[Mapping[Asking, str]] = {
    Asking.BLOCKING: "blocking",
    Asking.KEYPOINT: "key points",
    Asking.CRITERION_B: "criterion B",
    Asking.CRITERION_A: "criterion A",
    Asking.REFERENCE: "reference",
}
_SHOWN: Final[Mapping[Verdict, str]] = {
    Verdict.SUCCESS: "success, 1",
    Verdict.FAILURE: "failure, 0",
    Verdict.EXCLUDED: "excluded",
    Verdict.ERROR: "**error**",
}


def markdown() -> str:
    lines = [
        "# What a judge's endpoint may answer",
        "",
        "One question of [`rubric_v1`](judges.md) is answered as the row says, every other one with the verdict that is hoped",
        "for; the cell is the judgement. A success is worth 1 and a failure 0; *excluded* and *error* have no reward, and",
        f"nothing is trained on them. A test tries every cell through the real client, with {MAX_ANSWERS} answers at most and",
        f"a patience of {PATIENCE_S:g} s (by default 4 and 600 s);",
        "`python -m tests.support.judging.judge_answers` writes this page.",
        "",
        f"| the endpoint answers | {' | '.join(_TITLES.values())} | the error says | requests |",
        "|---" * (len(_TITLES) + 3) + "|",
    ]
    for case in CASES:
        cells = " | ".join(_SHOWN[case.expected(asking).verdict] for asking in Asking)
        example = case.expected(Asking.REFERENCE).error
        lines.append(f"| {case.name} | {cells} | {example} | {case.num_requests or 'while there is patience'} |")
    return "\n".join(
        [
            *lines,
            "",
            "The other verdict on blocking is that the site blocked the agent: nobody's failure, and the site goes on the",
            "blocklist. The other verdict on a key point is that its screenshot is no evidence; the last one always is.",
            "Errors are shown as the reference question has them.",
            "",
            "[Published evaluators](judges.md#published-evaluators) read their answers by the same rule, with the fields and",
            "words of their own forms; `tests/unit/test_published_answers.py` has a table of sixty answers for each.",
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(markdown())
