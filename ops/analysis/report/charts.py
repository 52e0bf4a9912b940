"""Charts as SVG without a script: their colours are the page's, or, in a file of its own, those of `STYLE`.

Words in a chart may come from task files: all of them are escaped.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from ops.analysis.report.tables import Chart, Series
from schemas.text import visible

_WIDTH, _HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 16, 40, 44
_COLOURS = 4
_BAR = 0.72
"""Of the room between two places."""
STYLE = """
.chart { --c0: #1b7f9e; --c1: #2e8b3d; --c2: #b06a00; --c3: #7a5bb5; --axis: #667085; --rule: #e3e7ed; --ink: #1c2430;
  font: 13px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
@media (prefers-color-scheme: dark) {
  .chart { --c0: #56c1e0; --c1: #6fce7f; --c2: #f0b654; --c3: #b9a0ee; --axis: #97a3b4; --rule: #2c3541; --ink: #e6eaf0; } }
.chart text { fill: var(--axis); }
.chart .name { fill: var(--ink); }
.chart .rule { stroke: var(--rule); }
.chart .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.chart .band { opacity: 0.16; stroke: none; }
.chart .whisker { stroke-width: 1.5; }
.chart .column { opacity: 0.85; }
"""


@dataclass(frozen=True, slots=True)
class _Scale:
    """From the chart's values to its screenshot."""

    low: float
    high: float

    def x(self, place: float) -> float:
        return _LEFT + (place - self.low) / (self.high - self.low) * (_WIDTH - _LEFT - _RIGHT)

    @staticmethod
    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - value * (_HEIGHT - _TOP - _BOTTOM)


def _words(words: str) -> str:
    """SVG has no place for control characters, escaped or not."""
    return escape(visible(words))


def draw(chart: Chart) -> str:
    """An `svg` element; put `STYLE` into the page around it."""
    scale = _scale(chart)
    parts = [*_rules(), *_axis(chart, scale), *_legend(chart)]
    for number, series in enumerate(chart.series):
        colour = f"var(--c{number % _COLOURS})"
        if chart.labels:
            parts += _bars(series, scale, colour, number, len(chart.series))
        else:
            parts += _line(series, scale, colour)
    inner = "\n".join(parts)
    return (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{_words(chart.title)}">\n{inner}\n</svg>'
    )


def draw_file(chart: Chart) -> str:
    """The same as a file that needs nothing besides itself."""
    svg = draw(chart)
    head, bracket, rest = svg.partition(">\n")
    paper = '<rect width="100%" height="100%" class="paper"/>'
    style = f"{STYLE}.paper {{ fill: #ffffff; }}\n@media (prefers-color-scheme: dark) {{ .paper {{ fill: #1b212a; }} }}\n"
    return f"{head}{bracket}<style>{style}</style>\n{paper}\n{rest}\n"


def _scale(chart: Chart) -> _Scale:
    if chart.labels:
        return _Scale(-0.5, len(chart.labels) - 0.5)
    places = [place for series in chart.series for place, _ in series.points]
    low, high = min(places, default=0.0), max(places, default=1.0)
    return _Scale(low, high if high > low else low + 1.0)


def _rules() -> Iterator[str]:
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _Scale.y(share)
        yield f'<line class="rule" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>'


def _axis(chart: Chart, scale: _Scale) -> Iterator[str]:
    y = _HEIGHT - _BOTTOM + 18
    places = list(enumerate(chart.labels)) or [(tick, f"{tick:,}") for tick in ticks(scale.low, scale.high)]
    for place, label in places:
        yield f'<text x="{scale.x(place):.1f}" y="{y}" text-anchor="middle">{_words(label)}</text>'
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield f'<text x="{middle:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{_words(chart.axis)}</text>'


def ticks(low: float, high: float, most: int = 8) -> list[int]:
    """Whole numbers at a round distance (1, 2 or 5 times a power of ten), at most so many.

    >>> ticks(1, 30), ticks(0, 3)
    ([5, 10, 15, 20, 25, 30], [0, 1, 2, 3])
    """
    step = next(
        factor * 10**power for power in range(20) for factor in (1, 2, 5) if (high - low) / (factor * 10**power) <= most - 1
    )
    return list(range(math.ceil(low / step) * step, math.floor(high) + 1, step))


def _legend(chart: Chart) -> Iterator[str]:
    yield f'<text class="name" x="{_LEFT}" y="18" font-weight="600">{_words(chart.title)}</text>'
    x = float(_WIDTH - _RIGHT)
    if len(chart.series) < 2:
        return
    for number, series in reversed(list(enumerate(chart.series))):
        x -= 7.2 * len(series.name)
        yield f'<text x="{x:.1f}" y="34">{_words(series.name)}</text>'
        yield f'<circle cx="{x - 9:.1f}" cy="30" r="4.5" fill="var(--c{number % _COLOURS})"/>'
        x -= 30


def _line(series: Series, scale: _Scale, colour: str) -> Iterator[str]:
    known = [(scale.x(place), share) for place, share in series.points if share.value is not None and share.interval]
    points = [(x, scale.y(share.value or 0.0), *(share.interval or (0.0, 1.0))) for x, share in known]
    if series.joined and len(points) > 1:
        upper = [f"{x:.1f},{scale.y(high):.1f}" for x, _, _, high in points]
        lower = [f"{x:.1f},{scale.y(low):.1f}" for x, _, low, _ in reversed(points)]
        yield f'<polygon class="band" fill="{colour}" points="{" ".join(upper + lower)}"/>'
        middle = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in points)
        yield f'<polyline class="line" stroke="{colour}" points="{middle}"/>'
        return
    for x, y, low, high in points:
        yield _whisker(x, scale.y(low), scale.y(high), colour)
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def _bars(series: Series, scale: _Scale, colour: str, number: int, many: int) -> Iterator[str]:
    room = (scale.x(1.0) - scale.x(0.0)) * _BAR
    width = min(room / many, 56.0)
    for place, share in series.points:
        if share.value is None or share.interval is None:
            continue
        left = scale.x(place) + (number - many / 2) * width
        y = scale.y(share.value)
        yield (
            f'<rect class="column" x="{left + 1:.1f}" y="{y:.1f}" width="{width - 2:.1f}" '
            f'height="{scale.y(0.0) - y:.1f}" fill="{colour}"><title>{_words(series.name)}: {share.value:.1%}</title></rect>'
        )
        yield _whisker(left + width / 2, scale.y(share.interval[0]), scale.y(share.interval[1]), "var(--ink)")


def _whisker(x: float, low: float, high: float, colour: str) -> str:
    return f'<line class="whisker" stroke="{colour}" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
