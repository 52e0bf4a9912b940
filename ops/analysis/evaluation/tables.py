"""The tables of an evaluation, which a terminal and a page draw alike."""

from collections.abc import Mapping, Sequence

from ops.analysis.evaluation.estimators import Estimate
from ops.analysis.evaluation.result import EvaluationResult, Group
from ops.analysis.report.labels import DIFFICULTIES, DISTRIBUTIONS, UNKNOWN
from ops.analysis.report.seen import SEEN
from ops.analysis.report.tables import NOTHING, Cell, Table, percent
from ops.statistics.shares import Share

JUDGED, ALL = "success, judged", "success, all"
_PASSES = ("k", "pass@k: one of k", "pass^k: all of k", "tasks")


def title(result: EvaluationResult) -> str:
    tries = f"{result.num_tasks} tasks x {result.repeat}"
    if len(result.seeds) > 1:
        tries += f" x {len(result.seeds)} seeds"
    return f"{result.model.name} on {result.tasks_file}: {tries}, judged by {result.rubric}"


def figures(result: EvaluationResult) -> Table:
    costs = result.costs
    policy: Cell = costs.policy
    if policy is None:
        policy = f"{NOTHING} (no price for the model in openai_config.prices)" if result.model.kind == "api" else None
    rows: tuple[tuple[Cell, ...], ...] = (
        ("success over judged episodes", result.judged),
        ("success over all tasks", result.planned),
        ("blocked", _counts(result.blocked)),
        ("invalid", _counts(result.invalid)),
        ("mean reward", result.reward),
        ("steps per episode", result.mean_steps),
        ("prompt tokens per episode", result.mean_prompt_tokens),
        ("completion tokens per episode", result.mean_completion_tokens),
        ("seconds per episode", result.mean_seconds),
        ("cost of the policy", policy),
        ("cost of judging", costs.judge),
    )
    note = "By episode, with Wilson's 95 %. Over all tasks, what is blocked or invalid is a failure."
    return Table(title=title(result), columns=("", ""), rows=rows, note=note)


def _counts(causes: Mapping[str, int]) -> Cell:
    if not causes:
        return 0
    return f"{sum(causes.values())}: " + ", ".join(f"{count} {cause}" for cause, count in causes.items())


def apart(result: EvaluationResult) -> Table:
    """Also where nothing is: that says something too."""
    rows: list[tuple[Cell, ...]] = []
    for name, causes in (("blocked", result.blocked), ("invalid", result.invalid)):
        rows.append((name, "all", Share(sum(causes.values()), result.num_planned)))
        rows += [(name, cause, Share(count, result.num_planned)) for cause, count in causes.items()]
    return Table(title="Blocked and invalid", columns=("counted as", "cause", "share of all"), rows=tuple(rows))


def passes(result: EvaluationResult) -> tuple[Table, ...]:
    """Of the judged tries; and of all, where some are apart."""
    judged = Table(
        title="By number of tries",
        columns=_PASSES,
        rows=_pass_rows(result.pass_at, result.pass_all),
        note="Means over tasks with k judged tries or more; 95 % by bootstrap over tasks.",
    )
    if not (result.blocked or result.invalid):
        return (judged,)
    over_all = Table(
        title="By number of tries, over all tasks",
        columns=_PASSES,
        rows=_pass_rows(result.pass_at_over_all, result.pass_all_over_all),
        note="With what is blocked or invalid as a failure.",
    )
    return judged, over_all


def _pass_rows(any_of: Sequence[Estimate], all_of: Sequence[Estimate]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        (str(one.k), estimate(one), estimate(other), one.num_tasks) for one, other in zip(any_of, all_of, strict=True)
    )


def estimate(one: Estimate) -> str:
    if one.value is None or one.low is None or one.high is None:
        return NOTHING
    return f"{percent(one.value)}  {100 * one.low:.1f}–{100 * one.high:.1f}"


def seeds(result: EvaluationResult) -> Table:
    return groups("By seed", "seed", list(result.by_seed.items()) if len(result.by_seed) > 1 else [])


def difficulties(result: EvaluationResult) -> Table:
    levels = [level for level in DIFFICULTIES if level in result.by_difficulty]
    return groups("By difficulty", "difficulty", [(level, result.by_difficulty[level]) for level in levels])


def distributions(result: EvaluationResult) -> Table:
    named = {DISTRIBUTIONS.get(name, name): group for name, group in result.by_distribution.items()}
    return _said("By distribution", "distribution", named)


def published_splits(result: EvaluationResult) -> Table:
    return _said("By published split", "split", result.by_published_split)


def _said(heading: str, label: str, found: Mapping[str, Group]) -> Table:
    """Without rows where no task says it."""
    return groups(heading, label, list(found.items()) if set(found) - {UNKNOWN} else [])


def seen(result: EvaluationResult) -> Table:
    rows = [(label, result.by_seen[label]) for label in SEEN if label in result.by_seen]
    return groups("By what is in the training tasks", "there is", rows, ", ".join(result.trained_on))


def sites(result: EvaluationResult, most: int) -> Table:
    """Those with most episodes."""
    ordered = sorted(result.by_site, key=lambda site: (-result.by_site[site].num_episodes, site))
    more = len(ordered) - most
    note = f"{more} more sites are in result.json." if more > 0 else ""
    return groups("By site", "site", [(site, result.by_site[site]) for site in ordered[:most]], note)


def groups(heading: str, label: str, rows: Sequence[tuple[str, Group]], note: str = "") -> Table:
    return Table(
        title=heading,
        columns=(label, JUDGED, ALL),
        rows=tuple((name, group.judged, group.over_all) for name, group in rows),
        note=note,
    )


def tasks(result: EvaluationResult) -> Table:
    rows = []
    for task, tries in result.tasks.items():
        detail = result.task_details[task]
        said = (task, detail.instruction, detail.site, detail.difficulty)
        rows.append((*said, f"{tries.successes} of {tries.scored}", _counts(detail.apart) if detail.apart else None))
    columns = ("task", "what it asks for", "site", "difficulty", "successes", "blocked or invalid")
    return Table(title="All tasks", columns=columns, rows=tuple(rows), note="Successes of the judged tries.")
