"""Your judge: says what a finished episode was worth, from 0 to 1. Only 1 is a success.

This one looks at the checks of the task, and rewards half of the way with half of the reward: without that, a task of several
steps is hardly ever rewarded at the beginning. `episode.trajectory` has the answer and the last page; `await
episode.observations()` in an `async` judge has every screenshot. Whoever judges differently gets another name (garden_v2).

More: docs/judges.md, examples/own_judge.py; `millrace rejudge` judges a finished run again.
"""

from judges.episode import JudgedEpisode
from judges.named import judge
from judges.programmatic.checks import evaluate
from schemas.errors import NoVerdict


@judge("garden_v1")
def garden(episode: JudgedEpisode) -> float:
    played = episode.trajectory
    if not played.task.checks:
        raise NoVerdict(f"task {played.task.task} has no checks: add them in tasks.jsonl")
    verdicts = evaluate(played.task.checks, played.answer, played.final_state)
    return sum(verdict.passed for verdict in verdicts) / len(verdicts)
