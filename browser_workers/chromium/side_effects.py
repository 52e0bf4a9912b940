"""Reports side effects that no screenshot shows: print, an opened select, an address outside the web, a copy.

`scripts/side_effects.js` keeps them in the document; whoever looks at the page takes them along, at no further round trip.
"""

from collections.abc import Sequence
from typing import Literal

SideEffect = tuple[str, str]
"""Kind and detail."""
_TEXT_LIMIT = 1000
_SENTENCES = {
    "print": "the page wanted to print, which was not done",
    "options": "a list of options opened, which no screenshot shows: choose with select; it has {}",
    "chooser": "the page asked for a file; there are none to give, so nothing was chosen",
    "external": "{} leads to another program, which is not there: nothing was opened",
}


def sentence(effect: SideEffect) -> str:
    """What the policy is told; empty where that is nothing."""
    kind, detail = effect
    return _SENTENCES.get(kind, "").format(detail[:_TEXT_LIMIT])


def announces(coming: Literal["window", "download"], side_effects: Sequence[SideEffect]) -> bool:
    return any(kind == coming for kind, _ in side_effects)


def last_copied(side_effects: Sequence[SideEffect]) -> str:
    """The text that was copied last; empty when none was."""
    return next((detail for kind, detail in reversed(side_effects) if kind == "copied"), "")
