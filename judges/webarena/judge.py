"""WebArena-Verified's verdict: a success when every evaluator of the task finds what it expects. No model is asked.

An answer that is not of the form, or that the evaluators cannot compare, is a failure with its reason; traffic that nobody
recorded, or not whole, is no verdict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from judges.episode import JudgedEpisode
from judges.judge import Ruling, scored, undecided
from judges.webarena.answer import NoResponse, read_response
from judges.webarena.evaluation import RESPONSE, Evaluation, read_evaluation
from judges.webarena.examiner import Examiner, Finding, NoFinding
from judges.webarena.traffic import entries_of
from schemas.errors import NoVerdict
from schemas.messages import StageVerdict

_NAMES = {RESPONSE: "response"}
_PASSED, _FAILED = "success", "failure"
_AS_EXPECTED = "as expected"
_DATA = "retrieved_data"


class WebArenaVerifiedJudge:
    def __init__(self, name: str, examiner: Examiner) -> None:
        self.name = name
        self._examiner = examiner

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        """Raises `NoVerdict` where the task has no evaluators, or what they look at was not recorded."""
        trajectory = episode.trajectory
        evaluation = read_evaluation(trajectory.task)
        try:
            response = read_response(trajectory.answer)
        except NoResponse as error:
            return scored(passed=False, stages=(StageVerdict("response", passed=False, reasoning=str(error)),))
        unfit = evaluation.unfit(trajectory.network)
        if unfit:
            return await self._without_traffic(evaluation, response, unfit, trajectory.task.instruction)
        record = await episode.network() if evaluation.compares_traffic else None
        entries = entries_of(record) if record is not None else []
        ruling = await self._compared(evaluation, response, entries, trajectory.task.instruction)
        if record is not None and record.summary.num_earlier_attempts:
            note = f"; {record.summary.num_earlier_attempts} earlier attempts were broken off, which this says nothing about"
            ruling = replace(ruling, stages=tuple(_noted(stage, note) for stage in ruling.stages))
        return ruling

    async def _without_traffic(
        self, evaluation: Evaluation, response: Mapping[str, Any], unfit: str, instruction: str
    ) -> Ruling:
        """A wrong answer is a failure whatever was sent; of a right one there is no verdict. Raises `NoVerdict`."""
        answers = [item for item in evaluation.eval if item["evaluator"] == RESPONSE]
        ruling = await self._compared(msgspec.structs.replace(evaluation, eval=answers), response, [], instruction)
        if ruling.reward is not None and ruling.reward > 0:
            raise NoVerdict(unfit)
        return ruling

    async def _compared(
        self, evaluation: Evaluation, response: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], instruction: str
    ) -> Ruling:
        try:
            found = await self._examiner.examine(evaluation, response, entries, instruction)
            reason = next((f"{each.evaluator}: {each.said}" for each in found if each.status not in (_PASSED, _FAILED)), "")
        except NoFinding as error:
            found, reason = (), str(error)
        stages = _stages(found)
        if not reason:
            return scored(passed=bool(stages) and all(stage.passed for stage in stages), stages=stages)
        if response.get(_DATA) is not None and await self._is_sound(evaluation, response, entries, instruction):
            said = f"the answer's {_DATA} cannot be compared ({reason})"
            return scored(passed=False, stages=(StageVerdict("response", passed=False, reasoning=said),))
        return undecided(f"the evaluators of WebArena-Verified failed: {reason}", stages=stages)

    async def _is_sound(
        self, evaluation: Evaluation, response: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], instruction: str
    ) -> bool:
        """Whether the evaluators come to an end with the same answer without its data."""
        try:
            found = await self._examiner.examine(evaluation, {**response, _DATA: None}, entries, instruction)
        except NoFinding:
            return False
        return all(each.status in (_PASSED, _FAILED) for each in found)


def _stages(found: Sequence[Finding]) -> tuple[StageVerdict, ...]:
    """One an evaluator: `response`, `network_1`, `network_2` ..."""
    stages: list[StageVerdict] = []
    num_network = 0
    for each in found:
        name = _NAMES.get(each.evaluator, "")
        if not name:
            num_network += 1
            name = f"network_{num_network}"
        passed = each.status == _PASSED
        stages.append(
            StageVerdict(name, passed=passed, reasoning=each.said or (_AS_EXPECTED if passed else "not as expected"))
        )
    return tuple(stages)


def _noted(stage: StageVerdict, note: str) -> StageVerdict:
    return msgspec.structs.replace(stage, reasoning=stage.reasoning + note) if stage.stage.startswith("network") else stage
