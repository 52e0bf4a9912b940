"""The sections of a report about success: at a glance, by version, by what tasks are, and under tighter step limits."""

from collections.abc import Mapping, Sequence

from ops.analysis.report.labels import DIFFICULTIES, DISTRIBUTIONS, EVAL, KINDS, TRAIN, UNKNOWN
from ops.analysis.report.limits import StepLimits
from ops.analysis.report.report import Report
from ops.analysis.report.success import Success, Tallies, Tally, total
from ops.analysis.report.tables import Cell, Chart, Headline, Section, Series, Table, shown
from ops.statistics.shares import Share

_NAMES = {EVAL: "held out"}
_DRAWN = (TRAIN, EVAL)
"""In charts."""
_MOST_POINTS = 200
SEEN_NOTE = "Under lower versions; a task is the same where website and instruction are."


def name_of(kind: str) -> str:
    return _NAMES.get(kind, kind)


def kinds_of(report: Report) -> tuple[str, ...]:
    """Those that there are."""
    return tuple(kind for kind in KINDS if kind in report.success.overall)


def headlines(report: Report) -> tuple[Headline, ...]:
    overall, spreads = report.success.overall, report.usage.spreads()
    every = total(overall)
    found = [Headline(label="episodes", value=report.num_episodes, note=f"{every.num_scored:,} with a verdict")]
    for kind in kinds_of(report):
        found.append(
            held_out(report) if kind == EVAL else Headline(label=f"success, {name_of(kind)}", value=overall[kind].success)
        )
    main = EVAL if EVAL in overall and TRAIN not in overall else TRAIN
    if main in spreads:
        for label, figure in (("steps per episode", "steps"), ("seconds per episode", "total_s")):
            spread = spreads[main][figure]
            note = "" if spread.p95 is None else f"{name_of(main)}, 95 % take at most {spread.p95:.3g}"
            found.append(Headline(label=label, value=spread.mean, note=note))
    found.append(Headline(label="steps parsed", value=every.parsed))
    rubric = report.judging.rubrics.get(report.rubric)
    if rubric is not None and rubric.spending.num_calls:
        spending = rubric.spending
        found.append(Headline(label="cost of judging", value=spending.cost, note=f"{spending.num_calls:,} model calls"))
    return tuple(found)


def held_out(report: Report) -> Headline:
    """Of the newest version that was evaluated: versions pooled are no one's success."""
    by_version = {version: tallies[EVAL] for version, tallies in report.success.by_version.items() if EVAL in tallies}
    label, first, last = f"success, {name_of(EVAL)}", min(by_version), max(by_version)
    note = "" if first == last else f"of version {last}; of version {first} {shown(by_version[first].success)}"
    return Headline(label=label, value=by_version[last].success, note=note)


def overall_section(report: Report) -> Section:
    rows = tuple((name_of(kind), *_tally_cells(report.success.overall[kind])) for kind in kinds_of(report))
    table = Table(
        title="By split",
        columns=("split", "episodes", "success", "mean reward", "steps parsed"),
        rows=rows,
        note="Intervals are Wilson's, of 95 %.",
    )
    return Section(
        title="Success",
        note=f"The share of episodes with a verdict that are a success, by {report.rubric}; the others count in no share.",
        charts=(*version_chart(report), *limit_chart(report.limits)),
        tables=(table,),
    )


def _tally_cells(tally: Tally) -> tuple[Cell, ...]:
    return tally.num_episodes, tally.success, tally.reward, tally.parsed


def version_chart(report: Report) -> tuple[Chart, ...]:
    """None where there is one version only."""
    by_version = report.success.by_version
    versions = sorted(by_version)
    if len(versions) < 2:
        return ()
    series = []
    for kind in _DRAWN:
        places = [version for version in versions if kind in by_version[version]]
        points = [(float(version), by_version[version][kind].success) for version in places]
        scored = [(place, share) for place, share in points if share.number]
        if scored:
            series.append(Series(name=name_of(kind), points=_thinned(scored), joined=kind == TRAIN or len(scored) > 2))
    return (Chart(name="success_by_version", title="Success by policy version", axis="policy version", series=tuple(series)),)


def _thinned(points: Sequence[tuple[float, Share]]) -> tuple[tuple[float, Share], ...]:
    """Neighbours taken together, where there are more than can be told apart."""
    size = -(-len(points) // _MOST_POINTS)
    parts = [points[start : start + size] for start in range(0, len(points), size)]
    return tuple(
        (part[-1][0], Share(sum(share.count for _, share in part), sum(share.number for _, share in part))) for part in parts
    )


def limit_chart(limits: StepLimits) -> tuple[Chart, ...]:
    """None where every episode takes one step."""
    curves = {kind: limits.by_kind[kind].curve() for kind in _DRAWN if kind in limits.by_kind}
    if max(map(len, curves.values()), default=0) < 2:
        return ()
    series = tuple(
        Series(name=name_of(kind), points=tuple((float(limit), share) for limit, share in enumerate(curve, 1)))
        for kind, curve in curves.items()
    )
    chart = Chart(name="step_limited_success", title="Success if at most n steps had been allowed", axis="n", series=series)
    return (chart,)


def task_section(report: Report, *, top: int) -> Section:
    success, kinds = report.success, kinds_of(report)
    tables = [_grouping("By difficulty", "difficulty", _in_order(success.by_difficulty, DIFFICULTIES), kinds)]
    distributions = {DISTRIBUTIONS.get(name, name): tallies for name, tallies in success.by_distribution.items()}
    for title, label, plural, groups in (
        ("By distribution", "distribution", "distributions", distributions),
        ("By published split", "split", "splits", success.by_published_split),
    ):
        if set(groups) - {UNKNOWN}:
            tables.append(_grouping(title, label, _most(groups, top, plural=plural), kinds))
    if seen := report.seen.tallies():
        tables.append(_grouping("By what training had played before", "it had played", seen, kinds, note=SEEN_NOTE))
    for title, label, plural, groups in (
        ("By domain", "domain", "domains", success.by_domain),
        ("By family of pages", "family", "families", success.by_family),
        ("By site", "site", "sites", success.by_site),
    ):
        tables.append(_grouping(title, label, _most(groups, top, plural=plural), kinds))
    return Section(
        title="By task",
        note="Difficulty 1 to 3 is easy, 4 to 6 medium, 7 and more hard.",
        charts=difficulty_chart(success),
        tables=tuple(tables),
    )


def difficulty_chart(success: Success) -> tuple[Chart, ...]:
    """None where all tasks are alike."""
    labels = tuple(label for label in DIFFICULTIES if label in success.by_difficulty)
    if len(labels) < 2:
        return ()
    series = []
    for kind in _DRAWN:
        places = [(float(place), success.by_difficulty[label].get(kind)) for place, label in enumerate(labels)]
        points = tuple((place, tally.success) for place, tally in places if tally is not None and tally.num_scored)
        series.append(Series(name=name_of(kind), points=points, joined=False))
    return (
        Chart(
            name="success_by_difficulty", title="Success by difficulty", axis="difficulty", series=tuple(series), labels=labels
        ),
    )


def version_table(report: Report, *, top: int) -> Table:
    """The newest ones."""
    by_version, kinds = report.success.by_version, kinds_of(report)
    chosen = sorted(by_version, reverse=True)[:top]
    older = len(by_version) - len(chosen)
    return _grouping(
        "By policy version",
        "version",
        {str(version): by_version[version] for version in chosen},
        kinds,
        note=f"The newest; {older:,} older ones are in report.json." if older else "",
    )


def _grouping(title: str, label: str, groups: Mapping[str, Tallies], kinds: Sequence[str], note: str = "") -> Table:
    rows = tuple(
        (name, total(tallies).num_episodes, *(tallies[kind].success if kind in tallies else None for kind in kinds))
        for name, tallies in groups.items()
    )
    columns = (label, "episodes", *(f"success, {name_of(kind)}" for kind in kinds))
    return Table(title=title, columns=columns, rows=rows, note=note)


def _in_order(groups: Mapping[str, Tallies], order: Sequence[str]) -> dict[str, Tallies]:
    return {label: groups[label] for label in order if label in groups}


def _most(groups: Mapping[str, Tallies], top: int, *, plural: str) -> dict[str, Tallies]:
    """Those with most episodes, and the rest as one."""
    ordered = sorted(groups, key=lambda label: (-total(groups[label]).num_episodes, label))
    chosen = {label: groups[label] for label in ordered[:top]}
    rest: Tallies = {}
    for label in ordered[top:]:
        for kind, tally in groups[label].items():
            rest[kind] = rest.get(kind, Tally()) + tally
    if rest:
        chosen[f"{len(ordered) - top:,} other {plural}"] = rest
    return chosen
