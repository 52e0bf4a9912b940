"""Reports on a run or an archive, in the terminal and as files."""

from collections.abc import Callable
from pathlib import Path

import anyio.to_thread
import msgspec

from ops.analysis.evaluation.identity import identity_in
from ops.analysis.report.charts import draw_file
from ops.analysis.report.figures import as_json, moment
from ops.analysis.report.page import page
from ops.analysis.report.report import Report, gather
from ops.analysis.report.sections import brief, sections
from ops.analysis.report.selection import Selection, counting_rubric
from ops.analysis.report.terminal import show
from ops.archive.durable import write_whole
from ops.archive.opening import open_source
from ops.archive.progress import progress_line
from ops.console.output_folder import make_output
from ops.console.terminal import Console
from schemas.errors import ConfigurationError
from trainer.tracking.metrics_file import rows_behind

_ROWS_IN_BRIEF, _ROWS_SHOWN, _ROWS_OF_PAGE = 5, 8, 25


async def report_on(source: Path, out: Path, *, rubric: str | None, selection: Selection, whole: bool = False) -> int:
    """`whole`: every table in the terminal too, which the page has in any case."""
    with progress_line() as tell:
        report = await report_of(source, rubric, selection, tell=lambda number: tell(f"{number:,} episodes"))
    written = await anyio.to_thread.run_sync(write, report, out)
    console = Console()
    headlines, parts = sections(report, top=_ROWS_SHOWN)
    show(title_of(report), headlines, parts if whole else brief(report, top=_ROWS_IN_BRIEF), console)
    console.print(f"\nwritten to {written}", soft_wrap=True, highlight=False, markup=False)
    if not whole:
        console.print("The page has the other tables; --whole shows them here.", markup=False)
    return 0


async def report_of(
    source: Path, rubric: str | None, selection: Selection, *, tell: Callable[[int], None] = lambda _: None
) -> Report:
    """Reads everything that is stored there.

    Raises:
        ConfigurationError: there is neither a run nor an archive, or it is not clear whose judgements count.
    """
    async with open_source(source, name="report") as opened:
        counting = counting_rubric(rubric, await opened.source.rubrics(), opened.config.bus_config.trained_rubric)
        report = Report(
            source=str(source.relative_to(here) if source.is_relative_to(here := Path.cwd()) else source),
            run=opened.config.bus_config.run,
            rubric=counting,
            evaluation=identity_in(source),
            selection=selection,
            training=tuple(row for row, _ in rows_behind(source / "metrics.jsonl", 0) if not row.evaluates),
        )
        return await gather(report, opened.source.episodes(), tell)


def title_of(report: Report) -> str:
    return f"Report on {report.run}"


def about(report: Report) -> tuple[str, ...]:
    chosen = report.selection
    span = f", ended from {_clock(report.first_s)} to {_clock(report.last_s)}" if report.num_episodes else ""
    sentences = [f"{report.num_episodes:,} episodes{span}.", f"Verdicts by {report.rubric}. Read from {report.source}."]
    if report.evaluation is not None:
        sentences.append(report.evaluation.sentence)
    asked = (
        ("split", chosen.split.value if chosen.split else None),
        ("since", _clock(chosen.since_s)),
        ("until", _clock(chosen.until_s)),
    )
    if words := [f"{name} {value}" for name, value in asked if value is not None]:
        sentences.append(f"Only {', '.join(words)}; {report.num_left_out:,} other episodes are left out.")
    return tuple(sentences)


def _clock(time_s: float | None) -> str | None:
    said = moment(time_s)
    return said.replace("T", " ").replace("+00:00", " UTC") if said else None


def write(report: Report, out: Path) -> str:
    """Writes `report.json`, `report.html` and the charts; names what was written."""
    headlines, parts = sections(report, top=_ROWS_OF_PAGE)
    make_output(out)
    try:
        figures = msgspec.json.format(msgspec.json.encode(as_json(report))) + b"\n"
        write_whole(out / "report.json", figures)
        write_whole(out / "report.html", page(title_of(report), about(report), headlines, parts).encode())
        for chart in (chart for part in parts for chart in part.charts):
            write_whole(out / f"{chart.name}.svg", draw_file(chart).encode())
    except OSError as error:
        raise ConfigurationError(f"{out} cannot be written ({error.strerror}): choose another folder with --out") from error
    return f"{out / 'report.html'}, with report.json and the charts beside it"
