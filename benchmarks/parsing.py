"""How long reading a model's answer takes, by its length: an honest one, and those that look for what grows with its square.

    python -m benchmarks.parsing

The length grows tenfold from row to row; so does the time of whatever is linear, and that of a quadratic reader a hundredfold.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agents.earlier_answers import without_thinking
from agents.parsing import parse_response
from agents.rendering import render_action
from benchmarks.report import RESULTS, Report
from schemas.messages import Action, ActionKind

_SIZES = (10_000, 100_000, 1_000_000)
_REPEATS = 3
_CLICK = render_action(Action(kind=ActionKind.CLICK, point=(120.0, 40.0)), thought="Click the button.")
_ANSWERS = {
    "words and a click": ("because ", _CLICK),
    "line ends": ("\n", ""),
    "Action:, then blanks": (" ", ""),
    "a coordinate, then blanks": (" ", ""),
    "tool calls without an end": ("<tool_call>", ""),
    "broken tool calls": ("<tool_call>{</tool_call>", ""),
    "braces": ('{"a":', ""),
    "thoughts without an end": ("<think>", ""),
}
_BEGINNINGS = {"Action:, then blanks": "Action: a", "a coordinate, then blanks": "coordinate:", "braces": "<tool_call>"}


@dataclass(frozen=True)
class Row:
    answer: str
    characters: int
    read_ms: float
    unthink_ms: float
    """Removing its thoughts, as a later prompt does."""


def _rows() -> Iterator[Row]:
    for name, (again, end) in _ANSWERS.items():
        for size in _SIZES:
            text = _BEGINNINGS.get(name, "") + again * (size // len(again)) + end
            read_ms, unthink_ms = _best_ms(parse_response, text), _best_ms(without_thinking, text)
            yield Row(name, len(text), read_ms, unthink_ms)


def _best_ms(read: Callable[[str], object], text: str) -> float:
    found = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        read(text)
        found.append(1000 * (time.perf_counter() - began))
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    Report(
        name="parsing",
        title="Reading what a model says",
        rows=list(_rows()),
        notes=("best of three; above 50,000 characters a policy worker reads in a thread",),
    ).publish(options.out)


if __name__ == "__main__":
    main()
