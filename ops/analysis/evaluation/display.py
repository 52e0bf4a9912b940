"""Evaluations for a terminal."""

from collections.abc import Sequence

from rich.console import Console

from ops.analysis.evaluation.comparison import Difference
from ops.analysis.evaluation.estimators import Estimate
from ops.analysis.evaluation.result import EvaluationResult, Group
from ops.analysis.report.labels import DIFFICULTIES
from ops.analysis.report.tables import NOTHING, Cell, Table, number, percent
from ops.analysis.report.terminal import drawn
from ops.statistics.shares import Share

_SITES = 8


def show(result: EvaluationResult, console: Console) -> None:
    for table in (_figures(result), _passes(result), *_groupings(result)):
        if table.rows:
            console.print(drawn(table))


def sentence(result: EvaluationResult) -> str:
    """The line that scripts look for."""
    success = NOTHING if result.success is None else f"{result.success:.3f}"
    interval = f"[{result.low or 0.0:.3f}, {1.0 if result.high is None else result.high:.3f}]"
    return f"success {success}  95 % {interval}  {result.num_successes} of {result.num_episodes}  {result.model.name}"


def _figures(result: EvaluationResult) -> Table:
    costs = result.costs
    unscored = ", ".join(f"{count} {cause}" for cause, count in result.unscored.items())
    policy: Cell = costs.policy
    if policy is None:
        policy = f"{NOTHING} (no price for the model in openai_config.prices)" if result.model.kind == "api" else None
    rows: tuple[tuple[Cell, ...], ...] = (
        ("success (pass@1 by episode)", Share(result.num_successes, result.num_episodes)),
        ("mean reward", result.reward),
        ("episodes without a verdict", f"{sum(result.unscored.values())}" + (f": {unscored}" if unscored else "")),
        ("steps per episode", result.mean_steps),
        ("tokens per episode, in and out", _pair(result.mean_prompt_tokens, result.mean_completion_tokens)),
        ("seconds per episode", result.mean_seconds),
        ("cost of the policy", policy),
        ("cost of judging", costs.judge),
    )
    tasks = f"{result.num_tasks} tasks x {result.repeat}"
    title = f"{result.model.name} on {result.tasks_file}: {tasks}, judged by {result.rubric}"
    return Table(title=title, columns=("", ""), rows=rows)


def _pair(one: float | None, other: float | None) -> str | None:
    return None if one is None or other is None else f"{number(one)}, {number(other)}"


def _passes(result: EvaluationResult) -> Table:
    rows = tuple(
        (str(any_of.k), _estimate(any_of), _estimate(all_of), any_of.num_tasks)
        for any_of, all_of in zip(result.pass_at, result.pass_all, strict=True)
    )
    return Table(
        title="By number of tries",
        columns=("k", "pass@k: one of k", "pass^k: all of k", "tasks"),
        rows=rows,
        note="Means over tasks with k scored tries or more; 95 % by bootstrap over tasks.",
    )


def _estimate(estimate: Estimate) -> str:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return NOTHING
    return f"{percent(estimate.value)}  {100 * estimate.low:.1f}–{100 * estimate.high:.1f}"


def _groupings(result: EvaluationResult) -> tuple[Table, Table]:
    levels = [level for level in DIFFICULTIES if level in result.by_difficulty]
    sites = sorted(result.by_site, key=lambda site: (-result.by_site[site].num_episodes, site))
    difficulty = _grouping("By difficulty", "difficulty", [(level, result.by_difficulty[level]) for level in levels])
    more = len(sites) - _SITES
    site = _grouping(
        "By site",
        "site",
        [(site, result.by_site[site]) for site in sites[:_SITES]],
        note=f"{more} more sites are in result.json." if more > 0 else "",
    )
    return difficulty, site


def _grouping(title: str, label: str, groups: Sequence[tuple[str, Group]], note: str = "") -> Table:
    rows = tuple((name, Share(group.num_successes, group.num_scored), group.num_episodes) for name, group in groups)
    return Table(title=title, columns=(label, "success", "episodes"), rows=rows, note=note)


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
                Share(result.num_successes, result.num_episodes),
                _estimate(result.pass_at[most - 1]),
                NOTHING if difference is None else _gain(difference),
                None if difference is None else difference.p_value,
                result.mean_steps,
                None if costs.policy is None else costs.policy + costs.judge,
            )
        )
    table = Table(
        title=f"{first.tasks_file}: {first.num_tasks} tasks, judged by {first.rubric}",
        columns=("model", "success", f"pass@{most}", "better than the first by", "p", "steps", "cost"),
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
