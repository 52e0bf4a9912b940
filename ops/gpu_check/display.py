"""Shows what a check came to: a table of figures with what is expected of them, the same as JSON, and a plot."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.table import Table

from ops.gpu_check.checks import Failure
from ops.gpu_check.results import Learning, Serving, Trained, Training, read
from schemas.trainer_config import TrainerConfig

TARGET_MFU = 0.4
_COLOUR = "#1b7f9e"
_GREY = "#d9dee2"
_IDLE = "the GPU waits"


@dataclass(frozen=True)
class Line:
    part: str
    figure: str
    value: float
    unit: str
    expected: str = ""


def lines(folder: Path) -> Iterator[Line]:
    """Of every part that came to something."""
    for file in sorted(folder.glob("serving-*.json")):
        if (serving := read(folder, file.stem, Serving)) is not None:
            yield from _serving(serving)
    if (trained := read(folder, "training", Trained)) is not None:
        yield from _trained(trained)
    if (learning := read(folder, "learning", Learning)) is not None:
        yield from _learning(learning)


def _serving(told: Serving) -> Iterator[Line]:
    part = "serving" if told.num_parts == 1 else f"serving in {told.num_parts} parts"
    yield Line(part, "until it can be asked", told.opened_s, "s")
    for each in told.throughput:
        answers = "answer" if each.at_once == 1 else "answers"
        yield Line(part, f"sampled, {each.at_once} {answers} at once", each.tokens_per_s, "tokens/s")
    if told.memory_gib is not None:
        yield Line(part, "memory of a GPU", told.memory_gib, "GiB", f"millrace plan: {told.planned_gib:.1f}")
    for way in told.refreshes:
        yield Line(part, f"next version, {way.megabytes:,.0f} MB by {way.over}", way.served_s, "s")


def _trained(told: Trained) -> Iterator[Line]:
    for run in told.runs:
        part = f"training, {run.layout}"
        samples = "sample" if run.samples_at_once == 1 else "samples"
        yield Line(part, f"trained, {run.samples_at_once} {samples} at once", run.tokens_per_s, "tokens/s")
        if run.mfu is not None:
            yield Line(part, "MFU", run.mfu, "", f"at least {TARGET_MFU:.2f}")
        if run.memory_gib is not None:
            yield Line(part, "memory of a GPU", run.memory_gib, "GiB", f"millrace plan: {run.planned_gib:.1f}")
        for kind, seconds in run.gpu_s.items():
            yield Line(part, f"of a step's {run.step_s:.2f} s: {kind}", seconds, "s")
    if (gate := told.agreement) is not None:
        bounds = TrainerConfig()
        part = f"policy and {gate.trainer.removeprefix('torch.')} trainer"
        yield Line(part, "k3", gate.k3, "nats", f"at most {bounds.max_mismatch_k3:g}")
        yield Line(part, "tokens far off", gate.far, "", f"at most {bounds.max_mismatch_far:g}")


def _learning(told: Learning) -> Iterator[Line]:
    yield Line("learning", "versions", 3600 * told.num_versions / told.seconds, "an hour")
    if told.success:
        yield Line("learning", "success of the first version's episodes", told.success[0], "")
        yield Line("learning", "of the last one's", told.success[-1], "")
    if told.most_k3 is not None:
        yield Line("learning", "largest k3", told.most_k3, "nats", f"at most {TrainerConfig().max_mismatch_k3:g}")


def table(found: Sequence[Line], *, title: str) -> Table:
    drawn = Table("part", "figure", title=title, title_justify="left")
    for column in ("value", "unit"):
        drawn.add_column(column, justify="right" if column == "value" else "left")
    drawn.add_column("expected")
    for line in found:
        drawn.add_row(line.part, line.figure, _number(line.value), line.unit, line.expected)
    return drawn


def written(folder: Path, failures: Sequence[Failure]) -> list[Line]:
    """All there is, which stands in `gpu_check.json` and `gpu_check.png` too."""
    found = list(lines(folder))
    told = {"figures": [asdict(line) for line in found], "failed": [asdict(failure) for failure in failures]}
    (folder / "gpu_check.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    plot(folder, folder / "gpu_check.png")
    return found


def plot(folder: Path, file: Path) -> None:
    """What there is of: tokens a second by answers at once, where an optimizer step's time goes, success by version."""
    served = [told for each in sorted(folder.glob("serving-*.json")) if (told := read(folder, each.stem, Serving)) is not None]
    trained, learning = read(folder, "training", Trained), read(folder, "learning", Learning)
    drawn: list[Callable[[Axes], None]] = []
    if served:
        drawn.append(lambda axes: _draw_sampling(axes, served))
    if trained is not None and (runs := [run for run in trained.runs if run.gpu_s]):
        drawn.append(lambda axes: _draw_steps(axes, runs))
    if learning is not None and learning.success:
        drawn.append(lambda axes: _draw_learning(axes, learning))
    with mpl.rc_context({"font.size": 10.0, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(max(1, len(drawn)) * 4.8, 3.8), dpi=130, layout="constrained")
        FigureCanvasAgg(figure)
        for place, draw in enumerate(drawn, start=1):
            draw(figure.add_subplot(1, len(drawn), place))
        figure.savefig(file)


def _draw_sampling(axes: Axes, served: Sequence[Serving]) -> None:
    for told in served:
        label = "one GPU" if told.num_parts == 1 else f"{told.num_parts} GPUs"
        axes.plot([t.at_once for t in told.throughput], [t.tokens_per_s for t in told.throughput], "o-", label=label)
    axes.legend(frameon=False)
    axes.set(title="sampled", xlabel="answers at once", ylabel="tokens a second", ylim=(0, None))


def _draw_learning(axes: Axes, learning: Learning) -> None:
    axes.plot(range(1, len(learning.success) + 1), learning.success, "o-", color=_COLOUR)
    axes.set(title="learning", xlabel="version", ylabel="success of its episodes", ylim=(0, 1))


def _draw_steps(axes: Axes, runs: Sequence[Training]) -> None:
    """A bar for each layout."""
    kinds = list(dict.fromkeys(kind for run in runs for kind in run.gpu_s))
    begins = [0.0] * len(runs)
    for kind in (*kinds, _IDLE):
        busy = [sum(run.gpu_s.values()) for run in runs]
        widths = [
            max(0.0, run.step_s - spent) if kind == _IDLE else run.gpu_s.get(kind, 0.0)
            for run, spent in zip(runs, busy, strict=True)
        ]
        axes.barh([run.layout for run in runs], widths, left=begins, label=kind, color=_GREY if kind == _IDLE else None)
        begins = [begin + width for begin, width in zip(begins, widths, strict=True)]
    axes.set(title="an optimizer step", xlabel="seconds")
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.4, -0.18))


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
