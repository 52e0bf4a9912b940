"""WebJudge of Online-Mind2Web: key points of the instruction, screenshots that matter to them, then the outcome.

Source: github.com/OSU-NLP-Group/Online-Mind2Web, mode WebJudge_Online_Mind2Web_eval, with its score threshold of 3;
arXiv 2504.01382.
"""

from collections.abc import Sequence

from judges.published.forms import Scored, listing, score, two_words
from judges.published.hearing import Hearing
from judges.published.history import actions
from judges.published.judge import Evaluator
from judges.published.material import Content

_LOWEST, _HIGHEST, _KEPT_FROM = 1, 5, 3
_MOST_SCREENSHOTS = 50
_KEY_POINTS = listing("key_points", "key_points", may_be_empty=False)
_SCORE = score("screenshot_score", lowest=_LOWEST, highest=_HIGHEST, kept_from=_KEPT_FROM)
_STATUS = two_words("outcome_status", passed="success", failed="failure", reasoning="thoughts", verdict="status")


async def _examine(hearing: Hearing) -> bool:
    material = hearing.material
    drawn_up = await hearing.ask(
        _KEY_POINTS,
        (material.text("key_points", instruction=material.instruction),),
        stage="key_points",
        system="key_points_system",
    )
    key_points = material.listed(drawn_up.items)
    hearing.note("key_points", passed=True, reasoning=key_points)
    task = material.task(key_points=key_points)
    # Without a word on where a screenshot stands among the others: equal ones are one question.
    asked = [(task, shot.screenshot, material.text("screenshot")) for shot in hearing.shots]
    scored = await hearing.score_screenshots(
        _SCORE, asked, stage="screenshot", system="screenshot_system", lowest=Scored(False, "", (_LOWEST,))
    )
    kept = [pair for pair in zip(hearing.shots, scored, strict=True) if pair[1].passed][:_MOST_SCREENSHOTS]
    shown = [shot for shot, _ in kept]
    content = (task, *_course(hearing, [found for _, found in kept]), *material.screenshots(shown), material.text("outcome"))
    return await hearing.decide(_STATUS, content, stage="outcome", shown=shown, system="outcome_system")


def _course(hearing: Hearing, kept: Sequence[Scored]) -> Content:
    material = hearing.material
    history = material.text("history", history=material.quoted(actions(hearing.steps)))
    if not kept:
        return (history,)
    reasons = "\n".join(f"{number}. {' '.join(found.reasoning.split())}" for number, found in enumerate(kept, 1))
    return (history, material.text("reasons", reasons=material.quoted(reasons)))


WEBJUDGE = Evaluator(
    _examine,
    {
        "key_points_system": frozenset(),
        "key_points": frozenset({"instruction"}),
        "screenshot_system": frozenset(),
        "screenshot": frozenset(),
        "outcome_system": frozenset(),
        "task": frozenset({"opening", "closing", "instruction", "key_points"}),
        "history": frozenset({"history"}),
        "reasons": frozenset({"reasons"}),
        "outcome": frozenset(),
    },
)
