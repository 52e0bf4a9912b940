"""Episodes before the rubric judge, and models that answer it as a function says."""

import json
from collections.abc import Callable, Sequence

import msgspec

from bus.codec import encode
from bus.evidence import Evidence
from bus.memory import MemoryBus
from bus.subjects import Subjects
from judges.episode import JudgedEpisode
from judges.rubric.asking import Finding, Inquiry, MalformedVerdict, Unusable
from judges.rubric.judge import RubricJudge
from judges.rubric.prompts import committed_prompts
from schemas.errors import NoVerdict
from schemas.judge_config import JudgeConfig
from schemas.messages import AskedQuestion, Fact, Observation, Outcome, StageUsage, StepRequest, Task, Trajectory
from tests.builders import RUN, observation, step_request, task

SUBJECTS = Subjects(RUN)
PROMPTS = committed_prompts("rubric_v1")
_WORDS = {
    "blocking_verdict": ("BLOCKED", "NOT_BLOCKED"),
    "keypoint_verdict": ("NEEDED", "NOT_NEEDED"),
    "criterion_verdict": ("SUCCESS", "FAILURE"),
}


def verdict(word: str, reasoning: str = "seen in screenshot 1") -> str:
    return json.dumps({"reasoning": reasoning, "verdict": word})


def word(inquiry: Inquiry, *, passed: bool) -> str:
    """Of the two that the question offers."""
    return _WORDS[inquiry.question.schema_name][not passed]


def holding(inquiry: Inquiry) -> str:
    """The honest answer with which everything holds."""
    return verdict(word(inquiry, passed=inquiry.stage != "blocking"))


class Models:
    """An sessions and its session: each question gets up to `max_answers` answers of a model."""

    def __init__(self, answer: Callable[[Inquiry], str | NoVerdict] = holding, *, max_answers: int = 2) -> None:
        self._answer = answer
        self._max_answers = max_answers
        self.asked = list[Inquiry]()
        self.held = list[Inquiry]()
        """Those whose answer held a verdict."""
        self.num_answers = 0

    async def begin(self, trajectory: Trajectory) -> "Models":
        return self

    async def ask(self, inquiry: Inquiry) -> Finding:
        self.asked.append(inquiry)
        refused = ""
        for _ in range(self._max_answers):
            said = self._answer(inquiry)
            if isinstance(said, NoVerdict):
                raise said
            self.num_answers += 1
            try:
                finding = inquiry.read(said)
            except MalformedVerdict as error:
                refused = str(error)
            else:
                self.held.append(inquiry)
                return finding
        raise Unusable(f"{inquiry.stage}: no verdict: {refused}")

    @property
    def usage(self) -> tuple[StageUsage, ...]:
        return (StageUsage(stage="all", model="fake", num_calls=self.num_answers),)

    @property
    def answered(self) -> tuple[AskedQuestion, ...]:
        return tuple(
            AskedQuestion(stage=each.stage, model="fake", temperature=0.0, screenshots=each.screenshots) for each in self.held
        )

    @property
    def stages(self) -> list[str]:
        return [inquiry.stage for inquiry in self.asked]


def rubric_judge(models: Models, **settings: int) -> RubricJudge:
    return RubricJudge(models, PROMPTS, msgspec.convert({"judge": "rubric_v1", **settings}, JudgeConfig))


def rubric_task(*, num_facts: int = 1, reference: str | None = None) -> Task:
    facts = tuple(Fact(f"fact {number} is shown", difficulty=number, group="lamps") for number in range(1, num_facts + 1))
    return msgspec.structs.replace(
        task(), instruction="find the price of the lamp", facts=facts, reference_answer=reference, difficulty=4
    )


def seen(of: Task, screenshots: Sequence[bytes]) -> tuple[Observation, ...]:
    return tuple(observation(of, step, data=data) for step, data in enumerate(screenshots))


def episode(
    of: Task,
    observations: Sequence[Observation],
    *,
    answer: str = "It costs 20 euros.",
    steps: Sequence[StepRequest] | None = None,
    gone: bool = False,
) -> JudgedEpisode:
    """An answered episode; with `gone`, its chain has aged out."""
    steps = [step_request(of, step) for step in range(len(observations))] if steps is None else steps
    bus = MemoryBus(SUBJECTS)
    stream = SUBJECTS.episodes(SUBJECTS.shard(of.episode))
    records: list[Observation | StepRequest] = [] if gone else [*observations, *steps]
    for record in records:
        kind = "obs" if isinstance(record, Observation) else "act"
        bus.store(stream, SUBJECTS.chain_record(of.episode, record.attempt, kind, record.step), encode(record))
    trajectory = Trajectory(
        task=of,
        attempt=1,
        outcome=Outcome.ANSWERED if answer else Outcome.STEP_LIMIT,
        num_observations=len(observations),
        num_steps=len(steps),
        answer=answer,
    )
    return JudgedEpisode(trajectory, Evidence(bus, SUBJECTS))
