"""Errors that nobody foresaw: what they are called, and when it is the worker that fails rather than its items. Pure."""

import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

from schemas.errors import MillraceError
from schemas.text import valid

MOST_TRIES = 3
"""An item that met so many of them, at whichever workers, is given up."""
MOST_IN_A_ROW = 5
"""A worker at which so many items in a row meet the same one ends."""
LONGEST = 500
"""Characters of what an error says."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Two errors of one kind and place are the same fault, whatever they say."""

    kind: str
    place: str
    """As in `mine/judges.py:12 in right_price`; empty when it was never raised."""
    error: str = field(compare=False)
    """As in `KeyError: 'price'`."""

    @classmethod
    def of(cls, error: BaseException) -> "Fault":
        """Never raises, whatever the error is: its text may be no text, and asking for it may raise."""
        said = "".join(traceback.format_exception_only(error)).strip()
        return cls(type(error).__name__, _place(error), valid(said, LONGEST))

    def __str__(self) -> str:
        return f"{self.error} ({self.place})" if self.place else self.error


def unforeseen(error: BaseException) -> Exception | None:
    """The first inside an error, or the error itself, that is no MillraceError; None when everything was foreseen."""
    return next((leaf for leaf in leaves(error) if not isinstance(leaf, MillraceError)), None)


def leaves(error: BaseException) -> Iterator[Exception]:
    """The errors inside a group, however deep, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from leaves(part)
    elif isinstance(error, Exception):
        yield error


def _place(error: BaseException) -> str:
    if error.__traceback__ is None:
        return ""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return valid(f"{'/'.join(PurePath(frame.filename).parts[-2:])}:{frame.lineno} in {frame.name}", LONGEST)


@dataclass
class Streak:
    """Of one worker: which items met which fault since the last one that met none."""

    most: int = MOST_IN_A_ROW
    _items: dict[Fault, set[str]] = field(default_factory=dict)

    def failed(self, fault: Fault, item: str) -> bool:
        """Whether the worker fails. One item that fails again and again says nothing about the worker."""
        items = self._items.setdefault(fault, set())
        items.add(item)
        return len(items) >= self.most

    def succeeded(self, item: str) -> None:
        """Unless it is one of those that failed, and was brought to an end for that."""
        if not any(item in items for items in self._items.values()):
            self._items.clear()
