"""Two evaluations side by side: only of the same tasks, judged and played alike, and paired by task. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from ops.analysis.evaluation.estimators import bootstrap, mcnemar
from ops.analysis.evaluation.result import EvaluationResult
from ops.analysis.evaluation.settings import differences
from schemas.errors import ConfigurationError
from schemas.text import visible


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Of a second evaluation's success from a first's, over the tasks that both have scored tries at."""

    num_tasks: int
    value: float | None
    """Mean over tasks; above 0 where the second is better."""
    low: float | None
    """Bootstrap interval of 95 %, whole tasks drawn again."""
    high: float | None
    only_first: int | None
    """Tasks that the first solved and the second did not; None where a task was tried more than once."""
    only_second: int | None
    p_value: float | None
    """McNemar's, exact, that both are equally good."""


def require_alike(results: Sequence[EvaluationResult]) -> None:
    """Raises `ConfigurationError` when a difference would not be the models' alone."""
    first = results[0]
    for other in results[1:]:
        found = differences(first.settings, other.settings)
        if found:
            names = f"{visible(first.model.name)} and {visible(other.model.name)}"
            raise ConfigurationError(
                f"{names} were not evaluated alike, so their difference would not be the models': they differ in "
                f"{', '.join(found)}; evaluate one of them again with the settings of the other"
            )


def compare(first: EvaluationResult, second: EvaluationResult, seed: int) -> Difference:
    shared = [task for task in first.tasks if task in second.tasks]
    pairs = [(first.tasks[task], second.tasks[task]) for task in shared]
    pairs = [(one, other) for one, other in pairs if one.scored and other.scored]
    if not pairs:
        return Difference(num_tasks=0, value=None, low=None, high=None, only_first=None, only_second=None, p_value=None)
    gains = [other.successes / other.scored - one.successes / one.scored for one, other in pairs]
    low, high = bootstrap(gains, seed)
    single = all(one.scored == other.scored == 1 for one, other in pairs)
    only_first, only_second = sum(gain < 0 for gain in gains), sum(gain > 0 for gain in gains)
    return Difference(
        num_tasks=len(pairs),
        value=sum(gains) / len(gains),
        low=low,
        high=high,
        only_first=only_first if single else None,
        only_second=only_second if single else None,
        p_value=mcnemar(only_first, only_second) if single else None,
    )
