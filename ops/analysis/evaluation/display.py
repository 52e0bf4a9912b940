"""Evaluations for a terminal."""

from collections.abc import Sequence

from rich.console import Console

from ops.analysis.evaluation import tables
from ops.analysis.evaluation.comparison import Difference
from ops.analysis.evaluation.result import EvaluationResult
from ops.analysis.report.tables import NOTHING, Table
from ops.analysis.report.terminal import drawn

_SITES = 8


def show(result: EvaluationResult, console: Console) -> None:
    shown = (
        tables.figures(result),
        *tables.passes(result),
        tables.seeds(result),
        tables.difficulties(result),
        tables.distributions(result),
        tables.published_splits(result),
        tables.seen(result),
        tables.sites(result, _SITES),
    )
    for table in shown:
        if table.rows:
            console.print(drawn(table))


def sentences(result: EvaluationResult) -> tuple[str, ...]:
    """The lines that scripts look for, and what was measured."""
    judged = f"success {_share(result.success, result.low, result.high)}"
    counted = f"{result.num_successes} of {result.num_episodes}"
    aside = f"{sum(result.blocked.values())} blocked  {sum(result.invalid.values())} invalid"
    whole = result.over_all
    over_all = _share(whole.value, whole.low, whole.high) if whole else NOTHING
    said = [
        f"{judged}  {counted}  {result.model.name}",
        f"over all tasks {over_all}  {result.num_successes} of {result.num_planned}  {aside}",
        f"model {result.model.words}",
    ]
    if result.protocol is not None:
        said.append(f"protocol {result.protocol.words}")
        said += [f"unlike where it was published: {difference}" for difference in result.protocol.differs]
    return tuple(said)


def _share(value: float | None, low: float | None, high: float | None) -> str:
    said = NOTHING if value is None else f"{value:.3f}"
    return f"{said}  95 % [{low or 0.0:.3f}, {1.0 if high is None else high:.3f}]"


def show_comparison(results: Sequence[EvaluationResult], found: Sequence[Difference], console: Console) -> None:
    """`found`: of each result after the first, from it."""
    first = results[0]
    most = min(result.repeat for result in results)
    rows = []
    for result, difference in zip(results, (None, *found), strict=True):
        costs = result.costs
        rows.append(
            (
                result.model.name,
                result.judged,
                result.planned,
                tables.estimate(result.pass_at[most - 1]),
                NOTHING if difference is None else _gain(difference),
                None if difference is None else difference.p_value,
                result.mean_steps,
                None if costs.policy is None else costs.policy + costs.judge,
            )
        )
    table = Table(
        title=f"{first.tasks_file}: {first.num_tasks} tasks, judged by {first.rubric}",
        columns=("model", tables.JUDGED, tables.ALL, f"pass@{most}", "better than the first by", "p", "steps", "cost"),
        rows=tuple(rows),
        note="Differences are paired by task, with 95 % by bootstrap over tasks; p is McNemar's, of tasks tried once.",
    )
    console.print(drawn(table))


def _gain(difference: Difference) -> str:
    if difference.value is None or difference.low is None or difference.high is None:
        return NOTHING
    points = f"{100 * difference.value:+.1f} points"
    discordant = ""
    if difference.only_first is not None and difference.only_second is not None:
        discordant = f", {difference.only_second} won, {difference.only_first} lost"
    return f"{points}  {100 * difference.low:+.1f} to {100 * difference.high:+.1f} ({difference.num_tasks} tasks{discordant})"
