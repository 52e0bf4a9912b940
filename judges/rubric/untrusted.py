"""Text that comes from pages and policies, made harmless to quote in a question.

Invariant: what is quoted stands line by line between two markers that carry a token, and neither the token nor a line that
does not begin with the quotation mark can stand inside; so nothing that is quoted ends its own quotation.
"""

import hashlib
import unicodedata
from dataclasses import dataclass

from schemas.ids import EpisodeId
from schemas.text import Characters, with_line_feeds

_SELECTORS = ("\U000e0100", "\U000e01ef")
"""Variation selectors that no text needs and that can carry hidden bytes."""
_REMOVED = "[removed]"
_LINE = "| "


@dataclass(frozen=True, slots=True)
class Fence:
    """The markers of one episode's questions."""

    token: str

    @property
    def opening(self) -> str:
        return f"<<<UNTRUSTED {self.token}>>>"

    @property
    def closing(self) -> str:
        return f"<<<END {self.token}>>>"

    def block(self, text: str) -> str:
        """The text as a quotation: opening, its lines, closing."""
        lines = self.plain(text).split("\n")
        return "\n".join((self.opening, *(_LINE + line for line in lines), self.closing))

    def plain(self, text: str) -> str:
        """The text without the token and without anything that cannot be seen."""
        visible = cleaned(text)
        # Of equal length, so that what is found in one stands at the same place in the other.
        folded = visible.translate(_FOLDED)
        pieces, start = list[str](), 0
        while (at := folded.find(self.token, start)) >= 0:
            pieces += (visible[start:at], _REMOVED)
            start = at + len(self.token)
        return "".join((*pieces, visible[start:]))


def fence(episode: EpisodeId, rubric: str) -> Fence:
    """The same whenever the episode is judged by this rubric: a question that is asked again is the same question."""
    return Fence(hashlib.sha256(f"{rubric}\0{episode}".encode()).hexdigest()[:20])


def cleaned(text: str) -> str:
    """Without control and formatting characters (direction, zero width, tags); line ends as `\\n`; storable as UTF-8."""
    return with_line_feeds(text).translate(_VISIBLE)


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, and a note of how many are left out."""
    return text if len(text) <= limit else f"{text[:limit]} [{len(text) - limit} more characters are left out]"


def on_one_line(text: str, limit: int) -> str:
    """Cleaned, shortened, and with every run of white space as one space."""
    return shortened(" ".join(cleaned(text).split()), limit)


def _visible(character: str) -> str:
    if character in "\n\t":
        return character
    match unicodedata.category(character):
        case "Cs":
            return "\ufffd"
        case "Cc" | "Cf":
            return ""
        case _:
            return "" if _SELECTORS[0] <= character <= _SELECTORS[1] else character


def _folded(character: str) -> str:
    """The plain letter or digit that a character looks like, if it is one."""
    plain = unicodedata.normalize("NFKC", character).lower()
    return plain if len(plain) == 1 else character


_VISIBLE = Characters(_visible)
_FOLDED = Characters(_folded)
