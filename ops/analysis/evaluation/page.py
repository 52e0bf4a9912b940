"""One evaluation as an HTML page that needs nothing besides itself."""

from collections.abc import Iterator
from pathlib import Path

from ops.analysis.evaluation import tables
from ops.analysis.evaluation.result import EvaluationResult, Group
from ops.analysis.report.page import page
from ops.analysis.report.tables import Chart, Headline, Section, Series, Table
from ops.archive.durable import write_whole
from ops.statistics.shares import Share
from schemas.errors import ConfigurationError


def write_page(path: Path, result: EvaluationResult) -> None:
    """Raises `ConfigurationError` when the file cannot be written."""
    try:
        write_whole(path, page_of(result).encode())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written ({error.strerror}): choose another --out") from error


def page_of(result: EvaluationResult) -> str:
    shown = [section for section in sections(result) if section.tables or section.charts]
    return page(f"Evaluation of {result.model.name}", tuple(about(result)), headlines(result), shown)


def about(result: EvaluationResult) -> Iterator[str]:
    said = result.protocol
    yield f"{tables.title(result)}."
    yield f"Model {result.model.words}."
    if said is None:
        yield "By no protocol: the settings below say how."
    else:
        yield f"Protocol {said.words}. {said.about}".rstrip()
        yield from (f"Unlike where it was published: {difference}" for difference in said.differs)
    yield f"Task file {result.tasks_file}, sha256 {result.tasks_sha256}."


def headlines(result: EvaluationResult) -> tuple[Headline, ...]:
    found = [
        Headline(label="success over judged episodes", value=result.judged),
        Headline(label="success over all tasks", value=result.planned),
    ]
    for label, causes in (("blocked", result.blocked), ("invalid", result.invalid)):
        found.append(Headline(label=label, value=sum(causes.values()), note=f"of {result.num_planned:,} episodes"))
    if len(result.pass_at) > 1 and result.pass_at[-1].value is not None:
        last = result.pass_at[-1]
        found.append(Headline(label=f"pass@{last.k}", value=tables.estimate(last).split("  ")[0], note=tables.estimate(last)))
    found.append(Headline(label="steps per episode", value=result.mean_steps))
    return tuple(found)


def sections(result: EvaluationResult) -> tuple[Section, ...]:
    settings = tuple((name, "none" if value is None else str(value)) for name, value in result.settings.items())
    levels = {str(row[0]): result.by_difficulty[str(row[0])] for row in tables.difficulties(result).rows}
    return (
        Section(title="Figures", tables=(tables.figures(result), tables.apart(result), *tables.passes(result))),
        Section(
            title="By seed",
            charts=_chart("success_by_seed", "Success by seed", "seed", result.by_seed),
            tables=_filled(tables.seeds(result)),
        ),
        Section(
            title="By difficulty",
            charts=_chart("success_by_difficulty", "Success by difficulty", "difficulty", levels),
            tables=_filled(tables.difficulties(result)),
        ),
        Section(title="By distribution", tables=_filled(tables.distributions(result))),
        Section(title="By published split", tables=_filled(tables.published_splits(result))),
        Section(title="By what is in the training tasks", tables=_filled(tables.seen(result))),
        Section(title="By site", tables=_filled(tables.sites(result, len(result.by_site)))),
        Section(title="Tasks", tables=_filled(tables.tasks(result))),
        Section(
            title="Settings",
            note="What has to be equal in two evaluations for their difference to be the models'.",
            tables=(Table(title="Settings", columns=("setting", "value"), rows=settings),),
        ),
    )


def _filled(table: Table) -> tuple[Table, ...]:
    return (table,) if table.rows else ()


def _chart(name: str, title: str, axis: str, groups: dict[str, Group]) -> tuple[Chart, ...]:
    """None where there is nothing to compare."""
    if len(groups) < 2:
        return ()
    series = (
        _series("judged", [group.judged for group in groups.values()]),
        _series("all", [group.over_all for group in groups.values()]),
    )
    return (Chart(name=name, title=title, axis=axis, series=series, labels=tuple(groups)),)


def _series(name: str, shares: list[Share]) -> Series:
    return Series(
        name=name, points=tuple((float(place), share) for place, share in enumerate(shares) if share.number), joined=False
    )
