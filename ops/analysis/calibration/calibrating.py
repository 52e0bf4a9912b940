"""Compares the stored judgements of a rubric with labels or another rubric, and shows and writes the comparison."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from judges.spending import spent
from ops.analysis.calibration.comparison import Truth, compare
from ops.analysis.calibration.display import show, side_by_side
from ops.analysis.calibration.published_labels import of_episodes, read_published, refuse_agent
from ops.analysis.calibration.report import Calibration
from ops.archive.episodes import EpisodeSource
from ops.archive.opening import open_source
from ops.console.output_folder import make_output, require_output
from ops.console.terminal import Console
from ops.labels.label_file import Label, read_labels, write_template
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId
from schemas.messages import Judgement, Trajectory

Judgements = dict[EpisodeId, Judgement]


def _require_labels(labels: Path) -> None:
    if not labels.is_file():
        raise ConfigurationError(f"there is no file of labels {labels}: write the path of one, or make one with --template")


async def against_labels(source: Path, rubrics: Sequence[str], labels: Path, agent: str | None, out: Path | None) -> int:
    _require_labels(labels)
    async with open_source(source, name="calibrate") as opened:
        judged = await _judgements(opened.source, tuple(rubrics))
        trajectories = [trajectory async for trajectory in opened.source.trajectories()]
    given = _labels(labels, agent, trajectories)
    truths = {trajectory.episode: _labelled(given, trajectory.episode) for trajectory in trajectories}
    calibrations = [
        Calibration(
            source=str(source),
            rubric=rubric,
            truth=labels.name,
            comparison=compare(truths, judged[rubric]),
            other_spending=None,
            unknown=tuple(sorted(given.keys() - truths.keys())),
        )
        for rubric in rubrics
    ]
    return await _finish(calibrations, out)


async def against_rubric(source: Path, rubrics: Sequence[str], other: str, out: Path | None) -> int:
    if other in rubrics:
        raise ConfigurationError(f"--rubric and --against are both {other}: name two rubrics")
    async with open_source(source, name="calibrate") as opened:
        judged = await _judgements(opened.source, (*rubrics, other))
        episodes = [trajectory.episode async for trajectory in opened.source.trajectories()]
    truths = {episode: Truth.judged(judged[other].get(episode)) for episode in episodes}
    calibrations = [
        Calibration(
            source=str(source),
            rubric=rubric,
            truth=other,
            comparison=compare(truths, judged[rubric]),
            other_spending=spent(judged[other].values()),
            unknown=(),
        )
        for rubric in rubrics
    ]
    return await _finish(calibrations, out)


async def template(source: Path, out: Path, sample: int | None = None) -> int:
    require_output(out.parent)
    async with open_source(source, name="calibrate") as opened:
        make_output(out.parent)
        count = await write_template(opened.source.trajectories(), out, sample)
    _say(Console(), f"{count} episodes to label in {out}: put true or false in place of null")
    return 0


async def _judgements(source: EpisodeSource, rubrics: tuple[str, ...]) -> dict[str, Judgements]:
    """By rubric. Raises `ConfigurationError` when nothing is judged by one of them."""
    known = await source.rubrics()
    for rubric in rubrics:
        if rubric not in known:
            raise ConfigurationError(f"nothing is judged by {rubric} there, only by {', '.join(sorted(known)) or 'no one'}")
    judged: dict[str, Judgements] = {rubric: {} for rubric in rubrics}
    async for stored in source.judgements():
        if stored.rubric in judged:
            judged[stored.rubric][stored.episode] = stored.message
    return judged


def _labelled(given: Mapping[EpisodeId, Label], episode: EpisodeId) -> Truth:
    label = given.get(episode)
    return Truth.labelled(label.success, label.note) if label else Truth.labelled(None)


def _labels(path: Path, agent: str | None, trajectories: Sequence[Trajectory]) -> Mapping[EpisodeId, Label]:
    """Of a file of labels by episode, or of one that a benchmark published."""
    published = read_published(path, agent)
    if published is not None:
        return of_episodes(published, trajectories)
    refuse_agent(path, agent)
    return read_labels(path)


async def _finish(calibrations: Sequence[Calibration], out: Path | None) -> int:
    written = "" if out is None else await _written(calibrations, out)
    console = Console()
    for calibration in calibrations:
        show(calibration, console)
    if len(calibrations) > 1:
        _say(console, f"\nbeside {calibrations[0].truth}")
        console.print(side_by_side(calibrations))
    if written:
        _say(console, f"\nwritten to {written}")
    return 0


def _say(console: Console, line: str) -> None:
    """As it is: names of files are no markup."""
    console.print(line, soft_wrap=True, highlight=False, markup=False)


async def _written(calibrations: Sequence[Calibration], out: Path) -> str:
    """Names the files: figures, of several rubrics as a list, and a picture for each."""
    make_output(out.parent)
    figures = [calibration.as_json() for calibration in calibrations]
    encoded = msgspec.json.encode(figures if len(figures) > 1 else figures[0])
    await anyio.Path(out).write_bytes(msgspec.json.format(encoded) + b"\n")
    if find_spec("matplotlib") is None:
        return f"{out}; there is no picture, which needs matplotlib"
    from ops.analysis.calibration.drawing import draw

    pictures = [
        out.with_suffix(".png") if len(calibrations) == 1 else out.with_name(f"{out.stem}-{calibration.rubric}.png")
        for calibration in calibrations
    ]
    for calibration, picture in zip(calibrations, pictures, strict=True):
        await anyio.to_thread.run_sync(draw, calibration, picture)
    return f"{out} and {', '.join(picture.name for picture in pictures)}"
