"""Compares the stored judgements of a rubric with labels or another rubric, and shows and writes the comparison."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from judges.spending import spent
from ops.analysis.calibration.comparison import Truth, compare
from ops.analysis.calibration.display import show
from ops.analysis.calibration.labels import Label, read_labels, write_template
from ops.analysis.calibration.report import Calibration
from ops.archive.episodes import EpisodeSource
from ops.archive.opening import open_source
from ops.console.output_folder import make_output
from ops.console.terminal import Console
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId
from schemas.messages import Judgement

Judgements = dict[EpisodeId, Judgement]


async def against_labels(source: Path, rubric: str, labels: Path, out: Path | None) -> int:
    given = read_labels(labels)
    async with open_source(source, name="calibrate") as opened:
        judged = await _judgements(opened.source, (rubric,))
        episodes = [trajectory.episode async for trajectory in opened.source.trajectories()]
    truths = {episode: _labelled(given, episode) for episode in episodes}
    calibration = Calibration(
        source=str(source),
        rubric=rubric,
        truth=labels.name,
        comparison=compare(truths, judged[rubric]),
        other_spending=None,
        unknown=tuple(sorted(given.keys() - truths.keys())),
    )
    return await _finish(calibration, out)


async def against_rubric(source: Path, rubric: str, other: str, out: Path | None) -> int:
    if rubric == other:
        raise ConfigurationError(f"--rubric and --against are both {rubric}: name two rubrics")
    async with open_source(source, name="calibrate") as opened:
        judged = await _judgements(opened.source, (rubric, other))
        episodes = [trajectory.episode async for trajectory in opened.source.trajectories()]
    truths = {episode: Truth.judged(judged[other].get(episode)) for episode in episodes}
    calibration = Calibration(
        source=str(source),
        rubric=rubric,
        truth=other,
        comparison=compare(truths, judged[rubric]),
        other_spending=spent(judged[other].values()),
        unknown=(),
    )
    return await _finish(calibration, out)


async def template(source: Path, out: Path) -> int:
    make_output(out.parent)
    async with open_source(source, name="calibrate") as opened:
        count = await write_template(opened.source.trajectories(), out)
    Console().print(f"{count} episodes to label in {out}: put true or false in place of null", soft_wrap=True, highlight=False)
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


async def _finish(calibration: Calibration, out: Path | None) -> int:
    written = "" if out is None else await _written(calibration, out)
    console = Console()
    show(calibration, console)
    if written:
        console.print(f"\nwritten to {written}", soft_wrap=True, highlight=False)
    return 0


async def _written(calibration: Calibration, out: Path) -> str:
    """Names the files."""
    make_output(out.parent)
    await anyio.Path(out).write_bytes(msgspec.json.format(msgspec.json.encode(calibration.as_json())) + b"\n")
    if find_spec("matplotlib") is None:
        return f"{out}; there is no picture, which needs matplotlib"
    from ops.analysis.calibration.drawing import draw

    picture = out.with_suffix(".png")
    await anyio.to_thread.run_sync(draw, calibration, picture)
    return f"{out} and {picture.name}"
