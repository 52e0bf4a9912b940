"""The Universal Verifier's structure: a rubric, screenshots by criterion, a score for the process, a verdict on the outcome.

The outcome alone decides. How the agent worked, what kept it from working and what it did beside its task are stages of their
own, which the verdict does not follow.

Source: arXiv 2604.06240 and github.com/microsoft/fara, webeval/rubric_agent: five screenshots a criterion, 0.8 of the points.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from judges.published.criteria import (
    OBSTACLE,
    Credit,
    Criterion,
    credit_form,
    criteria_of,
    process_score,
    rubric_form,
    told,
)
from judges.published.forms import Listed, Scored, listing, scores, two_words
from judges.published.hearing import Hearing
from judges.published.history import actions_with_thoughts
from judges.published.judge import Evaluator
from judges.published.material import Content
from judges.published.screenshots import relevant
from judges.rubric.evidence import SeenScreenshot, spread
from judges.rubric.side_by_side import all_of

_SCREENSHOTS_EACH = 5
_MOST_SCREENSHOTS = 50
_HIGHEST_SCORE = 10
_PROCESS_SUCCESS = 0.8
_RUBRIC = rubric_form()
_SIDE_EFFECTS = listing("side_effects", "side_effects", may_be_empty=True)
_OUTCOME = two_words("outcome_verdict", passed="SUCCESS", failed="FAILURE")


@dataclass(frozen=True, slots=True)
class _Rubric:
    criteria: tuple[Criterion, ...]
    shown: tuple[tuple[SeenScreenshot, ...], ...]
    """Of each criterion."""

    @property
    def evidence(self) -> tuple[SeenScreenshot, ...]:
        """What any criterion shows, in order."""
        every: Mapping[int, SeenScreenshot] = {shot.step: shot for shots in self.shown for shot in shots}
        return spread([every[step] for step in sorted(every)], _MOST_SCREENSHOTS)


async def _examine(hearing: Hearing) -> bool:
    criteria = criteria_of(hearing.task.facts) or await _drawn_up(hearing)
    hearing.note("rubric", passed=True, reasoning=_listed(hearing, criteria))
    rubric = _Rubric(criteria, await _shown(hearing, criteria))
    before = _before(hearing)
    credits = await all_of([partial(_credit, hearing, before, *pair) for pair in zip(criteria, rubric.shown, strict=True)])
    for number, (credit, shown) in enumerate(zip(credits, rubric.shown, strict=True), 1):
        hearing.note(f"criterion_{number}", passed=credit.passed, reasoning=told(criteria[number - 1], credit), shown=shown)
    effects = await _side_effects(hearing, before, rubric.evidence)
    _note_process(hearing, criteria, credits, effects)
    return await _outcome(hearing, before, rubric, credits, effects)


async def _drawn_up(hearing: Hearing) -> tuple[Criterion, ...]:
    """From the instruction alone, so that nothing that an agent did shapes what is asked of it."""
    material = hearing.material
    content = (material.text("rubric", instruction=material.instruction),)
    return (await hearing.ask(_RUBRIC, content, stage="rubric", system="rubric_system")).criteria


async def _shown(hearing: Hearing, criteria: Sequence[Criterion]) -> tuple[tuple[SeenScreenshot, ...], ...]:
    """The screenshots that tell most about each criterion."""
    material = hearing.material
    form = scores("screenshot_relevance", len(criteria), highest=_HIGHEST_SCORE)
    before = (material.task(), material.text("criteria", criteria=_listed(hearing, criteria)))
    question = material.text("relevance", count=str(len(criteria)))
    found = await hearing.score_screenshots(
        form,
        [(*before, shot.screenshot, question) for shot in hearing.shots],
        stage="relevance",
        system="relevance_system",
        lowest=Scored(True, "", (0,) * len(criteria)),
    )
    return tuple(
        tuple(hearing.shots[place] for place in relevant([each.scores[index] for each in found], _SCREENSHOTS_EACH))
        for index in range(len(criteria))
    )


def _listed(hearing: Hearing, criteria: Sequence[Criterion]) -> str:
    conditions = (f" (only if: {each.condition})" if each.condition else "" for each in criteria)
    return hearing.material.listed(each.description + only for each, only in zip(criteria, conditions, strict=True))


def _before(hearing: Hearing) -> Content:
    material = hearing.material
    history = material.text("history", history=material.quoted(actions_with_thoughts(hearing.steps)))
    return (material.task(), history, material.answer())


async def _credit(hearing: Hearing, before: Content, criterion: Criterion, shown: Sequence[SeenScreenshot]) -> Credit:
    material = hearing.material
    question = material.text(
        "criterion",
        criterion=material.written(criterion.description),
        condition=material.written(criterion.condition) or "always",
        points=str(criterion.points),
    )
    content = (*before, *material.screenshots(shown), question)
    return await hearing.ask(credit_form(criterion), content, stage="criterion", shown=shown)


async def _side_effects(hearing: Hearing, before: Content, shown: Sequence[SeenScreenshot]) -> Listed:
    content = (*before, *hearing.material.screenshots(shown), hearing.material.text("side_effects"))
    return await hearing.ask(_SIDE_EFFECTS, content, stage="side_effects", shown=shown)


def _note_process(hearing: Hearing, criteria: Sequence[Criterion], credits: Sequence[Credit], effects: Listed) -> None:
    met = ", ".join(str(number) for number, credit in enumerate(credits, 1) if credit.applies and credit.failure == OBSTACLE)
    hearing.note("obstacles", passed=not met, reasoning=f"met at criteria {met}" if met else "none was met")
    hearing.note("side_effects", passed=not effects.items, reasoning="; ".join(effects.items) or effects.reasoning)
    earned, points = process_score(criteria, credits, len(effects.items))
    passed = points > 0 and earned >= _PROCESS_SUCCESS * points
    hearing.note("process", passed=passed, reasoning=f"{earned} of {points} points")


async def _outcome(hearing: Hearing, before: Content, rubric: _Rubric, credits: Sequence[Credit], effects: Listed) -> bool:
    material, shown = hearing.material, rubric.evidence
    lines = [told(criterion, credit) for criterion, credit in zip(rubric.criteria, credits, strict=True)]
    lines += [f"Deed that nobody asked for: {effect}" for effect in effects.items]
    question = material.text("outcome", scored=material.quoted("\n".join(lines)))
    content = (*before, *material.screenshots(shown), question)
    return await hearing.decide(_OUTCOME, content, stage="outcome", shown=shown)


UNIVERSAL_VERIFIER = Evaluator(
    _examine,
    {
        "rubric_system": frozenset(),
        "rubric": frozenset({"instruction"}),
        "relevance_system": frozenset(),
        "criteria": frozenset({"criteria"}),
        "relevance": frozenset({"count"}),
        "system": frozenset(),
        "task": frozenset({"opening", "closing", "instruction"}),
        "history": frozenset({"history"}),
        "answer": frozenset({"answer"}),
        "criterion": frozenset({"criterion", "condition", "points"}),
        "side_effects": frozenset(),
        "outcome": frozenset({"scored"}),
    },
)
