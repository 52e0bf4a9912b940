"""Reads what a task's evaluators go by, and says what of the traffic they look at. Pure."""

from typing import Any

import msgspec

from schemas.errors import NoVerdict
from schemas.messages import NetworkSummary, Task

RESPONSE, NETWORK = "AgentResponseEvaluator", "NetworkEventEvaluator"
_UNKEPT = frozenset({"cookie", "set-cookie", "authorization", "proxy-authorization"})
"""Headers that no record keeps."""
_PREPARE = "prepare it with millrace tasks prepare webarena-verified"


class _Expected(msgspec.Struct):
    http_method: str = "GET"
    headers: dict[str, Any] | None = None


class _Evaluator(msgspec.Struct):
    evaluator: str
    should_not_exist: bool = False
    expected: _Expected = msgspec.field(default_factory=_Expected)


class Evaluation(msgspec.Struct):
    """As `Task.evaluation` has it."""

    task_id: int
    sites: dict[str, str]
    """Addresses, by name."""
    eval: list[dict[str, Any]]
    intent_template_id: int = 0
    revision: int = 1

    @property
    def evaluators(self) -> list[str]:
        return [item["evaluator"] for item in self.eval]

    @property
    def compares_traffic(self) -> bool:
        return NETWORK in self.evaluators

    def unfit(self, network: NetworkSummary | None) -> str:
        """Why this record does not say what the evaluators ask of it; empty: it does, or none is needed."""
        asked = [item for item in msgspec.convert(self.eval, list[_Evaluator]) if item.evaluator == NETWORK]
        if not asked:
            return ""
        if network is None:
            return (
                "its evaluators compare network traffic, of which there is no record: "
                "start browser workers with browser_config.record_network=true, and play it again"
            )
        if network.missing:
            return f"the record of its traffic is not whole; it lacks {', '.join(network.missing)}"
        changes = [item for item in asked if item.should_not_exist or item.expected.http_method.upper() != "GET"]
        if network.num_earlier_attempts and changes:
            return (
                f"{network.num_earlier_attempts} earlier attempts of it were broken off, and what they changed on the site is "
                "in no record: play it again on fresh sites"
            )
        unkept = {name for item in asked for name in item.expected.headers or {} if name.lower() in _UNKEPT}
        if unkept:
            return f"its evaluators compare the header {min(unkept)}, which no record keeps: judge it by another judge"
        return ""


def read_evaluation(task: Task) -> Evaluation:
    """Raises `NoVerdict`, which says how to come by one."""
    if not task.evaluation:
        raise NoVerdict(f"task {task.task} has no evaluation of WebArena-Verified: {_PREPARE}, or use another judge")
    try:
        evaluation = msgspec.json.decode(task.evaluation, type=Evaluation)
        known = msgspec.convert(evaluation.eval, list[_Evaluator])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NoVerdict(f"the evaluation of task {task.task} cannot be read ({error}): {_PREPARE}") from error
    strange = {item.evaluator for item in known} - {RESPONSE, NETWORK}
    if strange or RESPONSE not in evaluation.evaluators:
        what = f"the evaluator {min(strange)}, which is none of" if strange else "no evaluator of the answer; there are"
        raise NoVerdict(f"the evaluation of task {task.task} has {what} {RESPONSE} and {NETWORK}: {_PREPARE}")
    return evaluation
