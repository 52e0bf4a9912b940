"""The judge that OpenWebRL trains by: one question about actions with the browser's feedback, answer and last screenshots.

Source: github.com/OpenWebRL/OpenWebRL, openwebrl/reward_browser.py, prompt variant action_history.
"""

from judges.published.forms import two_words
from judges.published.hearing import Hearing
from judges.published.history import actions_with_feedback
from judges.published.judge import Evaluator

_NUM_SCREENSHOTS = 3
_VERDICT = two_words("task_verdict", passed="SUCCESS", failed="NOT SUCCESS")


async def _examine(hearing: Hearing) -> bool:
    if not hearing.is_answered():
        return False
    material, shown = hearing.material, hearing.shots[-_NUM_SCREENSHOTS:]
    told = actions_with_feedback(hearing.observations, hearing.steps)
    content = (
        material.task(),
        material.text("history", history=material.quoted(told)),
        material.answer(),
        *material.screenshots(shown),
        material.text("question", count=str(len(shown))),
    )
    return await hearing.decide(_VERDICT, content, stage="outcome", shown=shown)


OPENWEBRL = Evaluator(
    _examine,
    {
        "system": frozenset(),
        "task": frozenset({"opening", "closing", "instruction"}),
        "history": frozenset({"history"}),
        "answer": frozenset({"answer"}),
        "question": frozenset({"count"}),
    },
)
