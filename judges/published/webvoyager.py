"""WebVoyager's evaluator: one question about the answer and the last screenshots.

Source: github.com/MinorJerry/WebVoyager, evaluation/auto_eval.py; the number of screenshots is that of its run_eval.sh.
"""

from judges.published.forms import two_words
from judges.published.hearing import Hearing
from judges.published.judge import Evaluator

NUM_SCREENSHOTS = 15
VERDICT = two_words("task_verdict", passed="SUCCESS", failed="NOT SUCCESS")


async def _examine(hearing: Hearing) -> bool:
    if not hearing.is_answered():
        return False
    material, shown = hearing.material, hearing.shots[-NUM_SCREENSHOTS:]
    question = material.text("question", count=str(len(shown)))
    content = (material.task(), material.answer(), *material.screenshots(shown), question)
    return await hearing.decide(VERDICT, content, stage="outcome", shown=shown)


WEBVOYAGER = Evaluator(
    _examine,
    {
        "system": frozenset(),
        "task": frozenset({"opening", "closing", "instruction"}),
        "answer": frozenset({"answer"}),
        "question": frozenset({"count"}),
    },
)
