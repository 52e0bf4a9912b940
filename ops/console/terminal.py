"""Prints on the terminal.

Invariant: nothing that is printed through a `Console` is obeyed by the terminal but the colours and movements that rich itself
writes, whoever's words it holds. Tables are laid out before: words that are made `schemas.text.visible` ahead of that keep
their columns too.
"""

from collections.abc import Iterable

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from schemas.text import harmless


class Console(rich.console.Console):
    """rich's, for words of others."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(harmless(segment.text), segment.style)
