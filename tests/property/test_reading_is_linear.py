"""Whatever a model, a page or a judge says, reading it takes work in proportion to its length: counted, not timed."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.agents.pattern_steps import steps

_ROOT = Path(__file__).parents[2]
_LENGTH, _TIMES = 30, (1, 3, 9)
"""What is repeated is of about that length, and there so many times."""
_MOST = 2.0
"""Work that the second lengthening adds for each character, as a multiple of what the first adds: about three times as much
where it is quadratic, and more where it is worse."""
_OFFSETS = range(4)
"""Added to how often it is repeated: how a text ends, as with an open quote, costs more for some numbers than for others."""


def _patterns(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _patterns(part)


def _compiled() -> dict[str, re.Pattern[str]]:
    """Every regular expression that a module of these packages holds."""
    found: dict[str, re.Pattern[str]] = {}
    for package in ("agents", "judges"):
        for path in sorted((_ROOT / package).rglob("*.py")):
            if "re.compile(" in path.read_text(encoding="utf-8"):
                module = import_module(".".join(path.relative_to(_ROOT).with_suffix("").parts))
                for name, value in vars(module).items():
                    found |= {f"{module.__name__}.{name} {n}": each for n, each in enumerate(_patterns(value))}
    return found


_COMPILED = _compiled()
_PIECES = st.sampled_from(
    [
        " ", "  ", "\t", "\n", "\r\n", "<tool_call>", "</tool_call>", "<think>", "</think>", "Action:", "Action: a", "a",
        "action", "coordinate", "start_", "coordinates:", "keys", "text", "enter=", ":", "=", "[", "(", "]", ",", "1", "12",
        "1.5", "-", "+", "111,", ".", "'", '"', "\\", "\\u0041", "{", "}", "page", "page ", "control +", "```json", "```",
        "ms", "2s", "can", "n't",
    ]
)  # fmt: skip
_SAID = st.lists(_PIECES, min_size=1, max_size=3).map("".join)


def _is_linear(pattern: re.Pattern[str], before: str, again: str, behind: str) -> bool:
    return any(_growth(pattern, before, again, behind, offset) <= _MOST for offset in _OFFSETS)


def _growth(pattern: re.Pattern[str], before: str, again: str, behind: str, offset: int) -> float:
    """How much more the second lengthening of a text costs for each character than the first."""
    once = again * (max(1, _LENGTH // len(again)) + offset)
    texts = [before + once * times + behind for times in _TIMES]
    work = [steps(pattern, text) for text in texts]
    first, second = ((work[n + 1] - work[n]) / (len(texts[n + 1]) - len(texts[n])) for n in range(2))
    return second / first


@settings(max_examples=15)
@example("", "\n", "")
@example("Action: a", " ", "b")
@example("coordinate:", " ", "")
@example("keys: [", " ", "x")
@example("page", " ", "")
@example("action", " ", "")
@example("", "Action: ", "")
@example("", "coordinate:", "")
@example("", "1", "x")
@example(" ", " control +<tool_call>", " ")
@example(" ", " 'control +", "<tool_call>")
@example('"', "coordinateenter=", "{```")
@example("coordinates:", "n't\"", "text<tool_call><tool_call>")
@given(_SAID, _SAID, _SAID)
def test_work_grows_like_the_text(before: str, again: str, behind: str) -> None:
    for name, pattern in _COMPILED.items():
        assert _is_linear(pattern, before, again, behind), f"{name} on {before!r} + {again!r} * n + {behind!r}"


@pytest.mark.parametrize(
    ("quadratic", "before", "again"),
    [
        (r"^\s*Action:", "", " \n"),
        (r"coordinate:\s*\(?\s*\d", "coordinate:", " "),
        (r"Action:(\S.*?)\s*$", "Action:a", " "),
        (r"\d+s", "", "1"),
    ],
)
def test_what_is_not_linear_is_found_out(quadratic: str, before: str, again: str) -> None:
    assert not _is_linear(re.compile(quadratic, re.MULTILINE), before, again, "x")


def test_every_expression_is_looked_at() -> None:
    assert {"agents.calls._LOOSE_FIELD 0", "agents.parsing._ACTION_LINE 0", "judges.rubric.verdicts._FENCED 0"} <= set(
        _COMPILED
    )
