"""A model that reads, for published evaluators: it answers from the texts of the screenshots that a request shows.

What an instruction takes for done it knows from the task file: its facts and its reference answer. It knows no labels and no
checks, so a verdict is as good as the screenshots and words that an evaluator chose to show.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.messages import Task
from tests.support.judging.endpoint_replies import Said
from tests.support.judging.endpoint_requests import Asked
from tests.support.judging.reading_model import answer_in
from tests.support.texts import reading
from tests.support.texts.page_text import digest_of

_INSTRUCTION = re.compile(r"^Instruction: (.+)$", re.MULTILINE)
_CRITERION = re.compile(r"^Criterion: (.+)$", re.MULTILINE)
_REASONING = "The texts of the screenshots were searched."


@dataclass(frozen=True, slots=True)
class Demand:
    """What one instruction asks for."""

    facts: tuple[str, ...]
    reference: str | None


def demands(tasks: Iterable[Task]) -> Mapping[str, Demand]:
    """By instruction."""
    return {
        " ".join(task.instruction.split()): Demand(tuple(fact.description for fact in task.facts), task.reference_answer)
        for task in tasks
    }


@dataclass(frozen=True, slots=True)
class PublishedReader:
    """The script of a scripted endpoint."""

    texts: Mapping[str, str]
    """By the digest of the screenshot."""
    demands: Mapping[str, Demand]

    def __call__(self, asked: Asked) -> Said:
        told = [text for message in asked.messages for text in message.content if isinstance(text, str)]
        seen = [self.texts[digest_of(screenshot)] for screenshot in asked.screenshots]
        instruction = next(found[1] for text in told if (found := _INSTRUCTION.search(text)))
        schema = asked.body["response_format"]["json_schema"]["name"]
        return Said(json.dumps(_answer(schema, self.demands[instruction], told, seen)))


def _answer(schema: str, demand: Demand, told: Sequence[str], seen: Sequence[str]) -> dict[str, Any]:
    match schema:
        case "key_points":
            return {"reasoning": _REASONING, "key_points": list(demand.facts)}
        case "screenshot_score":
            return {"reasoning": _REASONING, "score": 5 if reading.needed("\n".join(demand.facts), seen[0]) else 1}
        case "screenshot_relevance":
            scores = [10 if reading.needed(fact, seen[0]) else 0 for fact in demand.facts]
            return {"reasoning": _REASONING, "scores": scores}
        case "criterion_credit":
            return {"reasoning": _REASONING, "applies": True, **_credit(demand, told[-1], seen)}
        case "side_effects":
            return {"reasoning": _REASONING, "side_effects": []}
        case "trajectory_status" | "outcome_status":
            return {"thoughts": _REASONING, "status": "success" if _proved(demand, seen) else "failure"}
        case "part_verdicts":
            word = "SUCCESS" if _is_done(demand, told, seen) else "NOT SUCCESS"
            return {"reasoning": _REASONING, "attributes": word, "filters": "NONE", "sorting": "NONE"}
        case "task_verdict":
            return {"reasoning": _REASONING, "verdict": "SUCCESS" if _is_done(demand, told, seen) else "NOT SUCCESS"}
        case "outcome_verdict":
            return {"reasoning": _REASONING, "verdict": "SUCCESS" if _is_done(demand, told, seen) else "FAILURE"}
        case _:
            raise AssertionError(f"{schema} is no question that can be read")


def _proved(demand: Demand, seen: Sequence[str]) -> bool:
    return all(reading.proved(fact, seen) for fact in demand.facts)


def _is_done(demand: Demand, told: Sequence[str], seen: Sequence[str]) -> bool:
    answer = answer_in(told)
    agrees = demand.reference is None or reading.agrees(answer, demand.reference)
    return _proved(demand, seen) and agrees and reading.supported(answer, seen)


def _credit(demand: Demand, question: str, seen: Sequence[str]) -> dict[str, Any]:
    found = _CRITERION.search(question)
    assert found is not None, question
    fact = next(each for each in demand.facts if found[1].startswith(" ".join(each.split())))
    if reading.proved(fact, seen):
        return {"earned": 1, "failure": "NONE"}
    return {"earned": 1, "failure": "OBSTACLE"} if reading.blocked(seen) else {"earned": 0, "failure": "AGENT"}
