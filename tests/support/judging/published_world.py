"""Published evaluators before models that answer as a function says."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from judges.endpoint.port import Question
from judges.prompt_files import Prompts
from judges.published.agenttrek import AGENTTREK
from judges.published.deepshop import DEEPSHOP
from judges.published.judge import Evaluator, PublishedJudge
from judges.published.opening import prompts_of
from judges.published.openwebrl import OPENWEBRL
from judges.published.universal_verifier import UNIVERSAL_VERIFIER
from judges.published.webjudge import WEBJUDGE
from judges.published.webvoyager import WEBVOYAGER
from judges.rubric.asking import Finding, Inquiry, QuestionKind
from schemas.judge_config import JudgeConfig
from schemas.messages import Screenshot
from tests.support.judging.endpoint_replies import Said
from tests.support.judging.endpoint_requests import Asked
from tests.support.judging.rubric_world import Models

EVALUATORS: Mapping[str, Evaluator] = {
    "agenttrek_v1": AGENTTREK,
    "deepshop_v1": DEEPSHOP,
    "openwebrl_v1": OPENWEBRL,
    "universal_verifier_v1": UNIVERSAL_VERIFIER,
    "webjudge_v1": WEBJUDGE,
    "webvoyager_v1": WEBVOYAGER,
}
PROMPTS: Mapping[str, Prompts] = {name: prompts_of(name, each.placeholders) for name, each in EVALUATORS.items()}
CRITERIA = [
    {"description": "the lamp is found", "condition": "", "points": 3},
    {"description": "its price is told", "condition": "it has one", "points": 1},
]
DECIDING = ("trajectory_status", "part_verdict", "part_verdicts", "task_verdict", "outcome_verdict", "outcome_status")
"""Schemas of the questions that decide."""


def published_judge(name: str, models: Models, **settings: Any) -> PublishedJudge:
    config = msgspec.convert({"judge": name, **settings}, JudgeConfig)
    return PublishedJudge(name, EVALUATORS[name], models, PROMPTS[name], config)


def said(inquiry: Inquiry, *, passed: bool = True, reasoning: str = "seen in screenshot 1") -> dict[str, Any]:
    """A good answer, as fields."""
    match inquiry.question.schema_name:
        case "trajectory_status" | "outcome_status":
            return {"thoughts": reasoning, "status": "success" if passed else "failure"}
        case "task_verdict" | "part_verdict":
            return {"reasoning": reasoning, "verdict": "SUCCESS" if passed else "NOT SUCCESS"}
        case "part_verdicts":
            word = "SUCCESS" if passed else "NOT SUCCESS"
            return {"reasoning": reasoning, "attributes": "SUCCESS", "filters": word, "sorting": "NONE"}
        case "outcome_verdict":
            return {"reasoning": reasoning, "verdict": "SUCCESS" if passed else "FAILURE"}
        case "key_points":
            return {"reasoning": reasoning, "key_points": ["find the lamp", "tell its price"]}
        case "screenshot_score":
            return {"reasoning": reasoning, "score": 4 if passed else 2}
        case "rubric":
            return {"reasoning": reasoning, "criteria": CRITERIA}
        case "screenshot_relevance":
            return {"reasoning": reasoning, "scores": [5] * _num_criteria(inquiry)}
        case "criterion_credit":
            return _credit(inquiry, passed, reasoning)
        case "side_effects":
            return {"reasoning": reasoning, "side_effects": [] if passed else ["step 1: a second lamp in the cart"]}
        case schema:
            raise AssertionError(f"nobody asks for {schema}")


def answer(inquiry: Inquiry, *, passed: bool = True, reasoning: str = "seen in screenshot 1") -> str:
    return json.dumps(said(inquiry, passed=passed, reasoning=reasoning))


def decides(inquiry: Inquiry) -> bool:
    return inquiry.question.schema_name in DECIDING


def asked_text(inquiry: Inquiry) -> str:
    return "\n".join(part for part in inquiry.question.content if isinstance(part, str))


def spoken(asked: Asked) -> Said:
    """A good answer to a request of the real client."""
    system, user = asked.messages
    shots = iter(Screenshot(data=data, media_type="image/jpeg", width=1, height=1) for data in user.screenshots)
    content = tuple(part if isinstance(part, str) else next(shots) for part in user.content)
    form = asked.body["response_format"]["json_schema"]
    question = Question(system=system.text, content=content, schema_name=form["name"], schema=form["schema"])
    return Said(answer(Inquiry(kind=QuestionKind.EVALUATION, stage="", question=question, read=_unread)))


def _unread(text: str) -> Finding:
    raise AssertionError(text)


def _num_criteria(inquiry: Inquiry) -> int:
    question = inquiry.question.content[-1]
    assert isinstance(question, str)
    return int(question.split(" criteria?")[0].rsplit(" ", 1)[1])


def _credit(inquiry: Inquiry, passed: bool, reasoning: str) -> dict[str, Any]:
    question = asked_text(inquiry)
    points = int(question.rsplit("\nPoints: ", 1)[1].split("\n")[0])
    earned, failure = (points, "NONE") if passed else (0, "AGENT")
    return {"reasoning": reasoning, "applies": True, "earned": earned, "failure": failure}
