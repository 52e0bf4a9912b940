"""The staged rubric judge: a model looks at the evidence, one question after the other, until one does not hold."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from judges.endpoint.port import Question
from judges.episode import JudgedEpisode
from judges.judge import Ruling, scored, undecided
from judges.prompt_files import Prompts
from judges.rubric.asking import Finding, Inquiry, JudgeSession, JudgeSessions, QuestionKind
from judges.rubric.copies import Copies
from judges.rubric.evidence import SeenScreenshot, distinct, evidence, spread
from judges.rubric.moments import account, untrusted_texts
from judges.rubric.protocol import protocols_of
from judges.rubric.questions import Questions
from judges.rubric.side_by_side import all_of
from judges.rubric.stages import Stage, StageKind, next_stage, required_stages, succeeded, was_blocked
from judges.rubric.untrusted import cleaned, fence
from judges.rubric.verdicts import BLOCKING, CRITERION, KEYPOINT, VerdictForm, read_verdict, unfenced
from judges.rubric.votes import decide
from schemas.errors import NoVerdict
from schemas.judge_config import JudgeConfig
from schemas.messages import Fact, StageVerdict, Trajectory, Verdict


class RubricJudge:
    """Asks, in this order: was the agent blocked, is there an answer, which screenshots are evidence, does the evidence show
    every claim of the answer, does it prove every fact, does the answer agree with the reference answer.

    Reward 1 only if all of it was answered and holds. No verdict on any of it is no verdict at all.
    """

    name = "rubric_v1"

    def __init__(self, sessions: JudgeSessions, prompts: Prompts, judge_config: JudgeConfig) -> None:
        self._sessions = sessions
        self._prompts = prompts
        self._config = judge_config

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        session = await self._sessions.begin(episode.trajectory)
        ruling = await self._ruling(episode, session)
        return replace(ruling, protocols=protocols_of(self.name, self._prompts, session))

    async def _ruling(self, episode: JudgedEpisode, session: JudgeSession) -> Ruling:
        required = required_stages(episode.trajectory.task)
        found = list[StageVerdict]()
        try:
            hearing = await self._hearing(episode, session)
            while (stage := next_stage(required, found)) is not None:
                found.append(await hearing.answer(stage))
        except NoVerdict as error:
            return undecided(str(error), stages=tuple(found), usage=session.usage)
        if blocked := was_blocked(found):
            return Ruling(
                verdict=Verdict.EXCLUDED,
                reward=None,
                stages=tuple(found),
                usage=session.usage,
                blocked=True,
                error=f"the site blocked the agent: {blocked.reasoning}",
            )
        return scored(passed=succeeded(required, found), stages=tuple(found), usage=session.usage)

    async def _hearing(self, episode: JudgedEpisode, session: JudgeSession) -> "_Hearing":
        """Raises `NoVerdict` when there is nothing to look at."""
        trajectory = episode.trajectory
        observations, steps = await episode.observations(), await episode.steps()
        if not observations:
            raise NoVerdict(f"episode {trajectory.episode} has no screenshot to judge it by")
        marks = fence(trajectory.episode, self._config.rubric)
        return _Hearing(
            trajectory=trajectory,
            session=session,
            questions=Questions(self._prompts, marks, trajectory, account(observations, steps)),
            copies=Copies((trajectory.answer, *untrusted_texts(observations, steps))),
            shots=distinct(observations),
            config=self._config,
        )


class _Hearing:
    """The stages of one episode; the evidence is chosen on the way."""

    def __init__(
        self,
        *,
        trajectory: Trajectory,
        session: JudgeSession,
        questions: Questions,
        copies: Copies,
        shots: Sequence[SeenScreenshot],
        config: JudgeConfig,
    ) -> None:
        self._trajectory = trajectory
        self._session = session
        self._questions = questions
        self._copies = copies
        self._shots = shots
        self._config = config
        self._evidence: tuple[SeenScreenshot, ...] = ()

    async def answer(self, stage: Stage) -> StageVerdict:
        """Raises `NoVerdict`."""
        match stage.kind:
            case StageKind.BLOCKING:
                return await self._blocking(stage)
            case StageKind.ANSWER:
                return self._final_answer(stage)
            case StageKind.KEYPOINT:
                return await self._keypoints(stage)
            case StageKind.CRITERION_B:
                return await self._criterion(stage, self._questions.criterion_b(self._evidence))
            case StageKind.CRITERION_A:
                assert stage.fact is not None, f"{stage.name} has no fact"
                return await self._criterion(stage, self._questions.criterion_a(self._evidence, stage.fact))
            case StageKind.REFERENCE:
                reference = self._trajectory.task.reference_answer or ""
                return await self._criterion(stage, self._questions.reference(self._evidence, reference))

    async def _blocking(self, stage: Stage) -> StageVerdict:
        shown = spread(self._shots, self._config.max_blocking_screenshots)
        question = self._questions.blocking(shown)
        finding = await self._ask(QuestionKind.BLOCKING, "blocking", question, BLOCKING, shown)
        return StageVerdict(stage.name, passed=not finding.passed, reasoning=finding.reasoning, evidence=_steps(shown))

    def _final_answer(self, stage: Stage) -> StageVerdict:
        there = bool(cleaned(self._trajectory.answer).strip())
        return StageVerdict(stage.name, passed=there, reasoning="" if there else "there is no final answer")

    async def _keypoints(self, stage: Stage) -> StageVerdict:
        """Of all screenshots but the last, many at once; the last is evidence in any case."""
        asked = self._shots[:-1]
        findings = await all_of([partial(self._keypoint, shot, number) for number, shot in enumerate(asked, 1)])
        needed = [shot.step for shot, finding in zip(asked, findings, strict=True) if finding.passed]
        self._evidence = evidence(self._shots, needed, self._config.max_evidence_screenshots)
        chosen = ", ".join(map(str, _steps(self._evidence)))
        return StageVerdict(stage.name, passed=True, reasoning=f"evidence: steps {chosen}", evidence=_steps(asked))

    async def _keypoint(self, shot: SeenScreenshot, number: int) -> Finding:
        question = self._questions.keypoint(shot, number, len(self._shots), self._facts)
        return await self._ask(QuestionKind.KEYPOINT, "keypoint", question, KEYPOINT, (shot,))

    @property
    def _facts(self) -> tuple[Fact, ...]:
        task = self._trajectory.task
        return task.facts or (Fact(task.instruction, difficulty=task.difficulty),)

    async def _criterion(self, stage: Stage, question: Question) -> StageVerdict:
        async def ask(vote: int) -> Finding:
            return await self._ask(QuestionKind.EVALUATION, stage.kind.value, question, CRITERION, self._evidence, vote)

        decision = await decide(ask, self._config.num_votes)
        return StageVerdict(
            stage.name,
            passed=decision.passed,
            reasoning=decision.reasoning,
            votes=decision.votes if self._config.num_votes > 1 else (),
            evidence=_steps(self._evidence),
        )

    async def _ask(
        self,
        kind: QuestionKind,
        stage: str,
        question: Question,
        form: VerdictForm,
        shown: Sequence[SeenScreenshot],
        vote: int = 0,
    ) -> Finding:
        def read(text: str) -> Finding:
            finding = read_verdict(form, text)
            self._copies.refuse(unfenced(text))
            return finding

        return await self._session.ask(
            Inquiry(kind=kind, stage=stage, question=question, read=read, screenshots=_steps(shown), vote=vote)
        )


def _steps(shown: Sequence[SeenScreenshot]) -> tuple[int, ...]:
    return tuple(shot.step for shot in shown)
