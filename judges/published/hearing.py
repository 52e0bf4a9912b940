"""One episode before a published evaluator: what there is to show, and the stages that were asked so far."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from judges.endpoint.port import Question
from judges.published.forms import Form, Found, Scored
from judges.published.material import Content, Material
from judges.published.screenshots import steps as steps_of
from judges.rubric.asking import Finding, Inquiry, JudgeSession, QuestionKind, Unusable
from judges.rubric.copies import Copies
from judges.rubric.evidence import SeenScreenshot
from judges.rubric.side_by_side import all_of
from judges.rubric.verdicts import unfenced
from judges.rubric.votes import decide
from schemas.messages import Observation, StageVerdict, StepRequest, Task


@dataclass(kw_only=True)
class Hearing:
    """Asks questions about one episode, and notes what came of them."""

    task: Task
    material: Material
    shots: tuple[SeenScreenshot, ...]
    """One for each observation, in order; at least one."""
    observations: tuple[Observation, ...]
    steps: tuple[StepRequest, ...]
    session: JudgeSession
    copies: Copies
    """Of what pages and the policy wrote."""
    num_votes: int
    found: list[StageVerdict] = field(default_factory=list)
    """Stages so far, in order."""

    def note(self, stage: str, *, passed: bool, reasoning: str = "", shown: Sequence[SeenScreenshot] = ()) -> bool:
        """Whether it passed."""
        self.found.append(StageVerdict(stage, passed=passed, reasoning=reasoning, evidence=steps_of(shown)))
        return passed

    async def ask(
        self,
        form: Form[Found],
        content: Content,
        *,
        stage: str,
        shown: Sequence[SeenScreenshot] = (),
        system: str = "system",
        kind: QuestionKind = QuestionKind.EVALUATION,
        vote: int = 0,
    ) -> Found:
        """What the first answer holds that keeps to the form. `shown` are the screenshots of the content, in order.

        Raises:
            NoVerdict: no answer does, or none could be had.
        """

        def read(text: str) -> Finding:
            found = form.read(text)
            self.copies.refuse(unfenced(text), form.decides)
            return found

        question = Question(system=self.material.text(system), content=content, schema_name=form.name, schema=form.schema)
        finding = await self.session.ask(
            Inquiry(kind=kind, stage=stage, question=question, read=read, screenshots=steps_of(shown), vote=vote)
        )
        assert isinstance(finding, form.finding), f"{stage} was answered with {finding}"
        return finding

    async def score_screenshots(
        self, form: Form[Scored], contents: Sequence[Content], *, stage: str, system: str, lowest: Scored
    ) -> list[Scored]:
        """Of each screenshot, about which `contents` ask; noted as a stage. The lowest where every answer was unusable.

        Raises:
            NoVerdict: no answer could be had, or none about any screenshot can be used.
        """
        unusable = dict[int, Unusable]()

        async def ask(place: int) -> Scored:
            shown, kind = (self.shots[place],), QuestionKind.KEYPOINT
            try:
                return await self.ask(form, contents[place], stage=stage, shown=shown, system=system, kind=kind)
            except Unusable as error:
                unusable[place] = error
                return lowest

        found = await all_of([partial(ask, place) for place in range(len(self.shots))])
        if len(unusable) == len(self.shots):
            raise unusable[0]
        scores = (
            f"{shot.step}: {' '.join(map(str, each.scores))}{' (no usable answer)' if place in unusable else ''}"
            for place, (shot, each) in enumerate(zip(self.shots, found, strict=True))
        )
        said = "".join(f"; {error}" for error in dict.fromkeys(map(str, unusable.values())))
        self.note("screenshots", passed=True, reasoning=f"scores by step: {', '.join(scores)}{said}", shown=self.shots)
        return found

    async def decide(
        self,
        form: Form[Finding],
        content: Content,
        *,
        stage: str,
        shown: Sequence[SeenScreenshot],
        system: str = "system",
    ) -> bool:
        """Whether a stage passed, which `judge_config.num_votes` decide. Raises `NoVerdict`."""

        async def ask(vote: int) -> Finding:
            return await self.ask(form, content, stage=stage, shown=shown, system=system, vote=vote)

        decision = await decide(ask, self.num_votes)
        self.found.append(
            StageVerdict(
                stage,
                passed=decision.passed,
                reasoning=decision.reasoning,
                votes=decision.votes if self.num_votes > 1 else (),
                evidence=steps_of(shown),
            )
        )
        return decision.passed

    def is_answered(self) -> bool:
        """As a stage: without an answer there is nothing to ask about."""
        there = self.material.has_answer
        return self.note("answer", passed=there, reasoning="" if there else "there is no final answer")
