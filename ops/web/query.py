"""Reads what the list of episodes is asked for from the query of its address. Pure.

Every mistake is a `ConfigurationError` that says what to write instead, for the page to show.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from starlette.datastructures import QueryParams

from bus.consumer.selection import RewardRange, choice
from ops.web.summary import Ruling, Summary
from schemas.errors import ConfigurationError
from schemas.messages import Outcome, Split, Verdict

UNJUDGED = "unjudged"
PAGE_ROWS = 100
_MOST_NEEDLE = 200
_KNOWN = frozenset(
    (
        *("q", "task", "group", "site", "split", "difficulty", "outcome", "verdict", "min_reward", "max_reward"),
        *("version", "worker", "rubric", "sort", "page"),
    )
)

Ruled = tuple[Summary, Ruling | None]
"""An episode with what the rubric that counts says of it."""
Test = Callable[[Summary, Ruling | None], bool]
SortKey = Callable[[Summary, Ruling | None], Any]
_SORTS: dict[str, SortKey] = {
    "ended": lambda summary, _: summary.ended_at,
    "reward": lambda _, ruling: None if ruling is None else ruling.reward,
    "steps": lambda summary, _: summary.num_steps,
    "seconds": lambda summary, _: summary.seconds,
    "difficulty": lambda summary, _: summary.difficulty,
    "version": lambda summary, _: summary.last_version,
    "task": lambda summary, _: summary.task,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Empty values ask for nothing."""

    text: str = ""
    """In task, instruction, answer, error or address, in any letter case."""
    task: str = ""
    group: str = ""
    sites: frozenset[str] = frozenset()
    splits: frozenset[str] = frozenset()
    difficulties: frozenset[int] = frozenset()
    outcomes: frozenset[str] = frozenset()
    verdicts: frozenset[str] = frozenset()
    """`unjudged` too."""
    rewards: RewardRange = field(default_factory=RewardRange)
    versions: range | None = None
    """Holds the policy version of every step."""
    worker: str = ""
    rubric: str = ""
    """Whose verdicts and rewards count; empty: the one that the run trains on."""
    sort: str = "ended"
    descending: bool = True
    page: int = 1

    def tests(self) -> tuple[Test, ...]:
        """What an episode has to pass: no more than what is asked for, since very many are looked at."""
        no_bounds = self.rewards == RewardRange()
        asked: tuple[tuple[object, Test], ...] = (
            (self.task, lambda row, _: row.task == self.task),
            (self.group, lambda row, _: row.group == self.group),
            (self.worker, lambda row, _: row.worker == self.worker),
            (self.sites, lambda row, _: row.site in self.sites),
            (self.splits, lambda row, _: row.split in self.splits),
            (self.difficulties, lambda row, _: row.difficulty in self.difficulties),
            (self.outcomes, lambda row, _: row.outcome in self.outcomes),
            (self.verdicts, lambda _, ruling: (UNJUDGED if ruling is None else ruling.verdict) in self.verdicts),
            (not no_bounds, lambda _, ruling: self.rewards.accepts(None if ruling is None else ruling.reward)),
            (self.versions, lambda row, _: self._has_versions(row)),
            (self.text, lambda row, _: self._has_text(row)),
        )
        return tuple(test for given, test in asked if given)

    def _has_versions(self, summary: Summary) -> bool:
        wanted = self.versions
        return wanted is None or (summary.first_version in wanted and summary.last_version in wanted)

    def _has_text(self, summary: Summary) -> bool:
        texts = (summary.instruction, summary.answer, summary.episode, summary.website, summary.url, summary.error)
        return any(self.text in text.casefold() for text in texts if text)

    def select(self, ruled: Iterable[Ruled]) -> list[Ruled]:
        """In the order asked for, newest first among equals; what has no value comes last, whichever the direction."""
        tests, key = self.tests(), _SORTS[self.sort]
        found = [pair for pair in ruled if all(test(*pair) for test in tests)] if tests else ruled
        newest_first = sorted(found, key=lambda row: row[0].ended_at, reverse=True)
        if self.sort == "ended" and self.descending:
            return newest_first
        having = [row for row in newest_first if key(*row) is not None]
        having.sort(key=lambda row: key(*row), reverse=self.descending)
        return having + [row for row in newest_first if key(*row) is None]


def read_query(parameters: QueryParams) -> Query:
    """Raises `ConfigurationError`."""
    if unknown := sorted(set(parameters) - _KNOWN):
        raise ConfigurationError(f"{unknown[0]!r} is no filter: write one of {', '.join(sorted(_KNOWN))}")
    sort = parameters.get("sort", "-ended")
    if sort.removeprefix("-") not in _SORTS:
        raise ConfigurationError(f"sort={sort} is no order: write one of {', '.join(_SORTS)}, with - before it for descending")
    return Query(
        text=parameters.get("q", "").strip()[:_MOST_NEEDLE].casefold(),
        task=parameters.get("task", ""),
        group=parameters.get("group", ""),
        sites=_several(parameters, "site"),
        splits=_named(parameters, "split", Split),
        difficulties=frozenset(_whole(value, "difficulty") for value in _several(parameters, "difficulty")),
        outcomes=_named(parameters, "outcome", Outcome),
        verdicts=_named(parameters, "verdict", Verdict, besides=UNJUDGED),
        rewards=RewardRange(low=_number(parameters, "min_reward"), high=_number(parameters, "max_reward")),
        versions=_versions(parameters.get("version", "")),
        worker=parameters.get("worker", ""),
        rubric=parameters.get("rubric", ""),
        sort=sort.removeprefix("-"),
        descending=sort.startswith("-"),
        page=max(1, _whole(parameters.get("page") or "1", "page")),
    )


def _several(parameters: QueryParams, name: str) -> frozenset[str]:
    return frozenset(value for value in parameters.getlist(name) if value)


def _named(parameters: QueryParams, name: str, kind: type[Enum], *, besides: str = "") -> frozenset[str]:
    values = _several(parameters, name)
    return frozenset(value if value == besides else choice(kind, value).value for value in values)


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ConfigurationError(f"{name}={text} is no whole number: write one such as {name}=2")
    return int(text)


def _number(parameters: QueryParams, name: str) -> float | None:
    text = parameters.get(name, "")
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not math.isfinite(number):
        raise ConfigurationError(f"{name}={text} is no number: write one such as {name}=0.5")
    return number


def _versions(text: str) -> range | None:
    """`3`, or `3-7` with both ends."""
    if not text:
        return None
    first, dash, last = text.partition("-")
    versions = range(_whole(first, "version"), _whole(last if dash else first, "version") + 1)
    if not versions:
        raise ConfigurationError(f"version={text} is empty: write one version as 3, or several as 3-7")
    return versions
