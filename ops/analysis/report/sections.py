"""The sections of a report about how episodes went: failures, usage, judges, repetition, versions and workers."""

from collections import Counter
from collections.abc import Mapping

from judges.spending import spending_rows
from ops.analysis.report.judging import Rubric
from ops.analysis.report.labels import KINDS
from ops.analysis.report.repetition import gini, share_of_top
from ops.analysis.report.report import Report
from ops.analysis.report.success import total
from ops.analysis.report.success_sections import headlines, kinds_of, name_of, overall_section, task_section, version_table
from ops.analysis.report.tables import Cell, Headline, Section, Table
from ops.statistics.shares import Share

_UNITS = {
    "steps": "steps per episode",
    "prompt_tokens": "prompt tokens per episode",
    "completion_tokens": "completion tokens per episode",
    "reset_s": "seconds preparing the page, an episode",
    "observe_s": "seconds looking, an episode",
    "policy_s": "seconds waiting for the policy, an episode",
    "act_s": "seconds acting, an episode",
    "total_s": "seconds per episode",
    "step_prompt_tokens": "prompt tokens per step",
    "step_completion_tokens": "completion tokens per step",
    "step_queued_s": "seconds queued at the policy, a step",
    "step_generated_s": "seconds generating, a step",
}
_MOST_VERSIONS = 12
_STAGES_NOTE = "Of the judgements that came to the stage, those that passed it."


def sections(report: Report, *, top: int) -> tuple[tuple[Headline, ...], tuple[Section, ...]]:
    """Everything that is shown; `top` rows of a grouping, and the rest as one."""
    return headlines(report), (
        overall_section(report),
        task_section(report, top=top),
        failure_section(report, top=top),
        *block_sections(report, top=top),
        usage_section(report),
        judge_section(report),
        repetition_section(report),
        run_section(report, top=top),
    )


def brief(report: Report, *, top: int) -> tuple[Section, ...]:
    """What fits on one screen: success of the newest `top` versions, and why episodes failed."""
    failures = failure_section(report, top=top)
    tables = tuple(table for table in (version_table(report, top=top), *failures.tables[:1]) if table.rows)
    return (Section(title="Success and failures", tables=tables),) if tables else ()


def failure_section(report: Report, *, top: int) -> Section:
    causes, kinds = report.causes, kinds_of(report)
    number = sum(sum(counts.values()) for counts in causes.counts.values())
    sums: Counter[str] = Counter()
    for counts in causes.counts.values():
        sums.update(counts)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (cause, Share(count, number), *(causes.counts.get(kind, Counter())[cause] for kind in kinds))
        for cause, count in sums.most_common()
    )
    by_cause = Table(
        title="By cause",
        columns=("cause", "share of them", *(name_of(kind) for kind in kinds)),
        rows=rows,
        note=f"Every one of the {number:,} episodes without a success has one cause.",
    )
    reasons = [(cause, why, count) for cause, found in causes.reasons.items() for why, count in found.items()]
    reasons.sort(key=lambda row: (-row[2], row))
    named = Table(title="Reasons", columns=("cause", "reason", "episodes"), rows=tuple(reasons[:top]))
    verdicts = tuple(sorted({verdict for found in causes.outcomes.values() for verdict in found}))
    ended = Table(
        title="How they ended, and the verdict",
        columns=("outcome", *verdicts),
        rows=tuple((outcome, *(found[verdict] for verdict in verdicts)) for outcome, found in sorted(causes.outcomes.items())),
    )
    return Section(title="Failures", tables=tuple(table for table in (by_cause, named, ended) if table.rows))


def block_sections(report: Report, *, top: int) -> tuple[Section, ...]:
    """None where no site kept anybody out."""
    blocking = report.blocking
    number = blocking.total.num_blocked
    if not number and not blocking.num_elsewhere and not blocking.num_lifted:
        return ()
    sites: tuple[tuple[Cell, ...], ...] = tuple(
        (site, visits.number, visits.blocked) for site, visits in blocking.most_blocked(top).items()
    )
    egresses: tuple[tuple[Cell, ...], ...] = tuple(
        (egress, visits.number, visits.blocked) for egress, visits in sorted(blocking.by_egress.items())
    )
    providers: tuple[tuple[Cell, ...], ...] = tuple(
        (provider, Share(count, number)) for provider, count in blocking.by_provider.most_common()
    )
    columns = ("visits", "of them blocked")
    tables = (
        Table(title="By site, most blocked first", columns=("site", *columns), rows=sites),
        Table(title="By egress", columns=("egress", *columns), rows=egresses),
        Table(title="By who guards the site", columns=("provider", "share of the blocks"), rows=providers),
    )
    note = "A visit is an attempt at an episode; blocked ones are excluded, and never become rewards."
    for what, count in (
        ("met on other sites than the episode's own", blocking.num_elsewhere),
        ("lifted", blocking.num_lifted),
    ):
        note += f" Blocks {what}: {count:,}." if count else ""
    return (Section(title="Blocks", note=note, tables=tuple(table for table in tables if table.rows)),)


def usage_section(report: Report) -> Section:
    tables = []
    spreads = report.usage.spreads()
    for kind in (kind for kind in KINDS if kind in spreads):
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (_UNITS[name], spread.mean, spread.p50, spread.p95, spread.number)
            for name, spread in spreads[kind].items()
            if spread.number
        )
        tables.append(
            Table(title=name_of(kind).capitalize(), columns=("figure", "mean", "median", "95 %", "number"), rows=rows)
        )
    gone = report.num_not_whole
    note = "Half of the values are at most the median, 95 % of them at most the last figure."
    if gone:
        note += f" Of {gone:,} episodes not every step is stored any more: their tokens are left out."
    return Section(title="Steps, tokens, seconds", note=note, tables=tuple(tables))


def judge_section(report: Report) -> Section:
    judging, tables = report.judging, []
    for name, rubric in sorted(judging.rubrics.items()):
        tables += _rubric_tables(name, rubric)
    if judging.pairs:
        rows = tuple((f"{first} and {second}", pair.disagreement) for (first, second), pair in sorted(judging.pairs.items()))
        tables.append(
            Table(
                title="Disagreement",
                columns=("rubrics", "verdicts that differ"),
                rows=rows,
                note="Of the episodes to which both gave a verdict.",
            )
        )
    return Section(title="Judges", tables=tuple(tables))


def _rubric_tables(name: str, rubric: Rubric) -> list[Table]:
    number, spread = rubric.verdicts.total(), rubric.seconds.spread()
    verdicts: list[tuple[Cell, ...]] = [(verdict, Share(count, number)) for verdict, count in sorted(rubric.verdicts.items())]
    verdicts.append(("ruled that the site blocked the agent", Share(rubric.num_blocked, number)))
    tables = [Table(title=f"{name}: verdicts", columns=("verdict", "share"), rows=tuple(verdicts))]
    spent: list[tuple[Cell, ...]] = list(spending_rows(rubric.spending))
    spent.append(("seconds a judgement, median and 95 %", f"{spread.p50 or 0:.4f}, {spread.p95 or 0:.4f}"))
    tables.append(Table(title=f"{name}: what it took", columns=("figure", "value"), rows=tuple(spent)))
    if rubric.stages:
        tables.append(
            Table(
                title=f"{name}: stages",
                columns=("stage", "passed", "vote agreement"),
                rows=tuple((stage, found.passed, found.vote_agreement) for stage, found in rubric.stages.items()),
                note=_STAGES_NOTE,
            )
        )
    if rubric.usage:
        tables.append(_models_table(name, rubric))
    return tables


def _models_table(name: str, rubric: Rubric) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            f"{stage}, {model}",
            usage.num_calls,
            usage.num_failures,
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.cost,
        )
        for (stage, model), usage in sorted(rubric.usage.items())
    )
    columns = ("question and model", "calls", "no answer", "tokens in", "tokens out", "cost")
    return Table(title=f"{name}: models", columns=columns, rows=rows)


def repetition_section(report: Report) -> Section:
    sites = [total(tallies).num_episodes for tallies in report.success.by_site.values()]
    over_run: tuple[tuple[Cell, ...], ...] = tuple(
        (what, len(counts), share_of_top(counts), gini(counts), max(counts, default=0))
        for what, counts in (("sites", sites), ("tasks", list(report.repetition.tasks.values())))
    )
    visits = Table(
        title="Over the run",
        columns=("", "number", "episodes of the first ten", "Gini", "most episodes of one"),
        rows=over_run,
        note="Gini is 0 where all have as many episodes, near 1 where one has nearly all.",
    )
    ends = report.repetition.by_end
    shares = {end: ends[end].shares() for end in ("success", "failure", "no verdict") if end in ends}
    names = list(next(iter(shares.values()), {}))
    within = Table(
        title="Within episodes",
        columns=("", *shares),
        rows=tuple((name, *(shares[end][name] for end in shares)) for name in names),
        note="By how the episode ended. A page is an address.",
    )
    return Section(title="Repetition", tables=tuple(table for table in (visits, within) if table.rows))


def run_section(report: Report, *, top: int) -> Section:
    spans, lags = report.staleness.spans, report.staleness.lags
    top = min(top, _MOST_VERSIONS)
    tables = [version_table(report, top=top)]
    if spans.total():
        tables.append(_versions("Versions that one episode was sampled by, newest minus oldest", spans))
        tables.append(_versions("Version of the last step minus the newest at admission", lags))
    trained = [row for row in report.training if "staleness_mean" in row.metrics]
    if trained:
        rows = tuple(
            (str(row.version), row.metrics["staleness_mean"], row.metrics.get("staleness_max"), row.metrics.get("mismatch"))
            for row in reversed(trained[-top:])
        )
        columns = ("version", "mean staleness", "largest", "mismatch, nats")
        tables.append(Table(title="What versions were trained on", columns=columns, rows=rows))
    workers = (
        ("Browser workers", "episodes", report.workers.browsers),
        ("Policy workers", "steps", report.workers.policies),
        ("Judge workers", "judgements", report.judging.by_judge),
    )
    tables += [_shares(title, unit, counts, top) for title, unit, counts in workers if counts]
    return Section(title="Versions and workers", tables=tuple(tables))


def _versions(title: str, counts: Mapping[int, int]) -> Table:
    number = sum(counts.values())
    rows = tuple((str(versions), Share(counts[versions], number)) for versions in sorted(counts))
    return Table(title=title, columns=("versions", "episodes"), rows=rows)


def _shares(title: str, unit: str, counts: Counter[str], top: int) -> Table:
    number = counts.total()
    rows = [(worker, Share(count, number)) for worker, count in counts.most_common(top)]
    if len(counts) > top:
        rows.append((f"{len(counts) - top:,} others", Share(number - sum(share.count for _, share in rows), number)))
    return Table(title=title, columns=("worker", f"share of {number:,} {unit}"), rows=tuple(rows))
