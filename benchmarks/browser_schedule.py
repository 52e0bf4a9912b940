"""What every system does in the browser benchmark: 20 steps per session, of which 10 navigate.

8 clicks (4 on links, 4 on a button that opens a panel), 6 page downs, 3 searches with Enter, 3 back.
"""

import enum
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.browser_site import NUM_LINKS, NUM_PAGES
from schemas.messages import Action, ActionKind

VIEWPORT = (1280, 768)
FORMAT: Literal["jpeg"] = "jpeg"
QUALITY = 80


class Kind(enum.Enum):
    LINK = "link"
    PANEL = "panel"
    DOWN = "page down"
    SEARCH = "search"
    BACK = "back"

    @property
    def navigates(self) -> bool:
        return self in (Kind.LINK, Kind.SEARCH, Kind.BACK)


_ORDER = (
    *(Kind.LINK, Kind.DOWN, Kind.DOWN, Kind.PANEL, Kind.SEARCH, Kind.DOWN, Kind.LINK, Kind.PANEL, Kind.BACK, Kind.DOWN),
    *(Kind.SEARCH, Kind.LINK, Kind.DOWN, Kind.PANEL, Kind.BACK, Kind.SEARCH, Kind.DOWN, Kind.LINK, Kind.PANEL, Kind.BACK),
)
NUM_STEPS = len(_ORDER)


@dataclass(frozen=True)
class Step:
    kind: Kind
    x: int = 0
    y: int = 28
    text: str = ""

    @property
    def action(self) -> Action:
        width, height = VIEWPORT
        point = ((self.x + 0.5) / width * 1000, (self.y + 0.5) / height * 1000)
        match self.kind:
            case Kind.LINK | Kind.PANEL:
                return Action(kind=ActionKind.CLICK, point=point)
            case Kind.SEARCH:
                return Action(kind=ActionKind.TYPE, point=point, text=self.text)
            case Kind.DOWN:
                return Action(kind=ActionKind.SCROLL)
            case Kind.BACK:
                return Action(kind=ActionKind.GO_BACK)


def first_page(episode: int) -> int:
    return episode * 5 % NUM_PAGES


def schedule(episode: int) -> Sequence[Step]:
    """The steps of the episode with this number; every system plays the same."""
    draw = random.Random(f"schedule|{episode}")
    steps = []
    for kind in _ORDER:
        match kind:
            case Kind.LINK:
                steps.append(Step(kind, x=75 + 120 * draw.randrange(NUM_LINKS)))
            case Kind.PANEL:
                steps.append(Step(kind, x=1190))
            case Kind.SEARCH:
                steps.append(Step(kind, x=900, text=str(draw.randrange(NUM_PAGES))))
            case _:
                steps.append(Step(kind))
    return steps
