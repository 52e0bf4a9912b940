"""What a page shows of itself that says whether it is a block. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Embedded:
    """A frame that a visitor sees."""

    url: str
    share: float
    """Of the viewport that it covers, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Of the main document."""

    url: str = ""
    title: str = ""
    status: int = 0
    """HTTP status; 0: it has none."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of its answer, names in lower case."""
    text: str = ""
    """Its beginning, as a visitor sees it."""
    num_characters: int = 0
    """Of all that text."""
    num_fields: int = 0
    """Into which a visitor can write, or from which choose."""
    scripts: tuple[str, ...] = ()
    """Addresses."""
    frames: tuple[Embedded, ...] = ()
    elements: frozenset[str] = frozenset()
    """Of the selectors that were asked about, those of which a visitor sees an element."""

    @property
    def is_bare(self) -> bool:
        """There is little beside a notice: no field, and less text than an article's first paragraph."""
        return not self.num_fields and self.num_characters <= _FEW_CHARACTERS


_FEW_CHARACTERS = 600
