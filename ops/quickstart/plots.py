"""The reward curve as a PNG file."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from ops.monitor.view import Curve

_TRAIN, _HELD_OUT, _BAR, _VERSION = "#1b7f9e", "#2e8b3d", "#c8860a", "#b9b9b9"


def plot_curve(curve: Curve, path: Path, *, title: str) -> None:
    """Success of training episodes as a line, held-out evaluations as labelled points, new versions as faint lines."""
    with mpl.rc_context({"font.size": 10.0, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(8.0, 4.5), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for mark in curve.versions:
            axes.axvline(mark.num_episodes, color=_VERSION, linewidth=0.6, alpha=0.6, zorder=0)
        if curve.bar is not None:
            label = f"goal: {curve.bar:.0%}"
            axes.axhline(curve.bar, color=_BAR, linestyle="--", linewidth=1.2, label=label)
        if curve.train:
            episodes, success = zip(*((p.num_episodes, p.success) for p in curve.train), strict=True)
            axes.plot(episodes, success, color=_TRAIN, linewidth=1.8, label="training episodes, moving mean")
        if curve.held_out:
            episodes, success = zip(*((p.num_episodes, p.success) for p in curve.held_out), strict=True)
            axes.scatter(episodes, success, color=_HELD_OUT, s=46, zorder=3, label="held-out pages", clip_on=False)
            for number, value in zip(episodes, success, strict=True):
                axes.annotate(f"{value:.2f}", (number, value), (7, -15), textcoords="offset points", color=_HELD_OUT)
        axes.set(title=title, xlabel="episodes (faint lines: a new policy version)", ylabel="success", ylim=(0.0, 1.0))
        axes.set_xlim(left=0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.grid(axis="y", color="#e8e8e8", linewidth=0.8)
        axes.set_axisbelow(True)
        if curve.train or curve.held_out or curve.bar is not None:
            axes.legend(loc="lower right", frameon=False)
        figure.savefig(path)
