"""What a document does that no picture shows: it asks to print, opens the list of a select, leads out of the web, copies.

`scripts/asides.js` keeps them in the document; whoever reads the page's state takes them along, at no further round trip.
"""

from collections.abc import Sequence
from pathlib import Path

SCRIPT = (Path(__file__).parent / "scripts" / "asides.js").read_text()
TAKE = '(() => { try { return (window[Symbol.for("millrace.asides")] ?? []).splice(0) } catch { return [] } })()'
"""JavaScript expression for those since the last time: a list of [kind, detail]."""

Aside = tuple[str, str]
COPIED = "copied"
_TEXT_LIMIT = 1000
_SENTENCES = {
    "print": "the page wanted to print, which was not done",
    "options": "a list of options opened, which no picture shows: choose with select; it has {}",
    "external": "{} leads to another program, which is not there: nothing was opened",
    "flood": "the page went beyond {} after one input: it was kept from more",
    "credentials": "the site asked for a name and a password (status {}), which nobody can enter here",
}


def sentence(aside: Aside) -> str:
    """What the policy is told; empty where that is nothing."""
    kind, detail = aside
    return _SENTENCES.get(kind, "").format(detail[:_TEXT_LIMIT])


def last_copied(asides: Sequence[Aside]) -> str:
    """The text that was copied last; empty when none was."""
    return next((detail for kind, detail in reversed(asides) if kind == COPIED), "")
