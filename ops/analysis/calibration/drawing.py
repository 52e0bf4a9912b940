"""A calibration as a PNG file: the confusion matrix, and the agreement at each difficulty with its interval."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ops.analysis.calibration.report import Calibration
from ops.analysis.calibration.statistics import Confusion
from ops.statistics.shares import Share

_RIGHT, _WRONG, _POINT = "#2e8b3d", "#c0392b", "#1b7f9e"
_EMPTY = "#f2f2f2"


def draw(calibration: Calibration, path: Path) -> None:
    found = calibration.comparison
    with mpl.rc_context({"font.size": 10.0, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(8.0, 3.8), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2)
        _matrix(left, found.confusion)
        _difficulties(right, found.by_difficulty)
        figure.suptitle(f"{calibration.rubric} against {calibration.truth}")
        figure.savefig(path)


def _matrix(axes: Axes, confusion: Confusion) -> None:
    cells = (
        (0, 0, confusion.true_positives, _RIGHT),
        (1, 0, confusion.false_negatives, _WRONG),
        (0, 1, confusion.false_positives, _WRONG),
        (1, 1, confusion.true_negatives, _RIGHT),
    )
    largest = max(count for _, _, count, _ in cells) or 1
    for x, y, count, colour in cells:
        shade = 0.15 + 0.75 * count / largest
        axes.fill([x, x + 1, x + 1, x], [y, y, y + 1, y + 1], color=colour if count else _EMPTY, alpha=shade if count else 1.0)
        axes.text(x + 0.5, y + 0.5, str(count), ha="center", va="center", fontsize=16)
    axes.set(xlim=(0, 2), ylim=(2, 0), xlabel="verdict", ylabel="truth", aspect="equal")
    axes.set_xticks([0.5, 1.5], ["success", "no success"])
    axes.set_yticks([0.5, 1.5], ["success", "no success"], rotation=90, va="center")
    axes.tick_params(length=0)


def _difficulties(axes: Axes, agreements: dict[int, Share]) -> None:
    for place, share in enumerate(agreements.values()):
        if share.value is None or share.interval is None:
            continue
        low, high = share.interval
        error = [[share.value - low], [high - share.value]]
        axes.errorbar([place], [share.value], yerr=error, fmt="o", color=_POINT, capsize=4)
        axes.text(place, 1.04, f"{share.count}/{share.number}", ha="center", va="bottom", fontsize=8)
    axes.set_xticks(range(len(agreements)), [str(level) for level in agreements])
    axes.set(xlabel="difficulty (bars: 95 % intervals)", ylabel="agreement", ylim=(0.0, 1.12))
    axes.set_xlim(-0.5, max(len(agreements), 1) - 0.5)
    axes.set_yticks([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    axes.grid(axis="y", color="#e8e8e8", linewidth=0.8)
    axes.set_axisbelow(True)
