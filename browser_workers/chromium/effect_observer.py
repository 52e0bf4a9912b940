"""Observes what an action reached and what it changed, as `scripts/` has seen it.

Invariant: nothing is said that was not seen: where a page went away under an action, or holds what cannot be looked into, the
sentences are fewer, never guesses.
"""

from dataclasses import dataclass

import msgspec

from browser_workers.chromium.evaluation import Evaluation
from browser_workers.chromium.loading import Loading
from browser_workers.chromium.side_effects import SideEffect

Point = tuple[int, int]
_PAGE_CAP_MS = 1000
"""How long a page that keeps moving is waited for."""


class PageSnapshot(msgspec.Struct, array_like=True, frozen=True):
    """One look at a document."""

    url: str
    title: str
    status: int
    """HTTP status of the document; 0 when it has none."""
    hit: str
    changes: tuple[str, ...] | None
    """Since the action began; None when this document has not seen it begin."""
    side_effects: tuple[SideEffect, ...] = ()
    """Since the look before."""


@dataclass(frozen=True, slots=True)
class Effect:
    hit: str = ""
    changes: tuple[str, ...] = ()


class EffectObserver:
    """Of the actions on one page."""

    def __init__(self, evaluation: Evaluation, loading: Loading) -> None:
        self._evaluation = evaluation
        self._loading = loading
        self._reached: str | None = None
        """What the action under way was about to reach; None while there is none."""
        self._names_hit = True
        self._num_documents = 0

    async def begin(self, point: Point | None, *, names_hit: bool = True) -> None:
        """An input at `point`, or by keyboard, comes next. Raises `PageFailed` or `BrowserLost`.

        Without `names_hit`, what lies there is not what the input is about.
        """
        x, y = point or ("null", "null")
        reached = await self._evaluation.own(f"begin({x}, {y})")
        self._names_hit = names_hit
        self._reached, self._num_documents = str(reached), self._loading.num_documents

    def forget(self) -> None:
        """No input is under way."""
        self._reached = None

    @property
    def _tells(self) -> str:
        return "false" if self._reached is None else "true"

    async def look(self) -> PageSnapshot:
        """The document as it is. Raises `PageFailed` or `BrowserLost`."""
        return msgspec.convert(await self._evaluation.own(f"state({self._tells})"), PageSnapshot)

    async def wait(self, least_s: float, *, scrolled: bool = False) -> PageSnapshot:
        """The document once it has come to rest, which takes `least_s` seconds at least. `scrolled`: by the input before.

        Raises `CallRefused` when another takes its place, and what `look` does.
        """
        given = f"{self._tells}, {least_s * 1000:.0f}, {_PAGE_CAP_MS}, {str(scrolled).lower()}"
        seen = await self._evaluation.own_here(f"settle({given})")
        return msgspec.convert(seen, PageSnapshot)

    def report(self, snapshot: PageSnapshot | None) -> Effect:
        """What the action under way came to, going by the newest snapshot of its page."""
        if self._reached is None:
            return Effect()
        if snapshot is None or snapshot.changes is None:
            snapshot = PageSnapshot("", "", 0, self._reached, ())
        hit = snapshot.hit if self._names_hit else ""
        if self._loading.num_documents != self._num_documents:
            return Effect(hit, ("another document was loaded",))
        return Effect(hit, snapshot.changes or ())
