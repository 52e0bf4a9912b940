"""AgentTrek's evaluator, as Online-Mind2Web's leaderboard code asks it: one question about the course and the last screenshot.

Source: github.com/OSU-NLP-Group/Online-Mind2Web, mode AgentTrek_eval; AgentTrek, arXiv 2412.09605. It is lenient on purpose:
most of the way counts as all of it.
"""

from judges.published.forms import two_words
from judges.published.hearing import Hearing
from judges.published.history import actions_with_thoughts
from judges.published.judge import Evaluator

_STATUS = two_words("trajectory_status", passed="success", failed="failure", reasoning="thoughts", verdict="status")


async def _examine(hearing: Hearing) -> bool:
    material, shown = hearing.material, hearing.shots[-1:]
    history = material.text("history", history=material.quoted(actions_with_thoughts(hearing.steps)))
    content = (material.task(), history, *material.screenshots(shown), material.text("question"))
    return await hearing.decide(_STATUS, content, stage="outcome", shown=shown)


AGENTTREK = Evaluator(
    _examine,
    {
        "system": frozenset(),
        "task": frozenset({"opening", "closing", "instruction"}),
        "history": frozenset({"history"}),
        "question": frozenset(),
    },
)
