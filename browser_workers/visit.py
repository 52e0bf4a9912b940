"""What one attempt has to do with the sites that it is on: whose turn it is, what keeps it out, and what their pages send."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace

import msgspec

from browser_workers.actions import web_address
from browser_workers.blockages.hook import Hook
from browser_workers.blockages.page import BlockedPage
from browser_workers.browser import Opening, Performed, Session
from browser_workers.har.log import NetworkLog
from bus.turns import Turn, Turns
from schemas.messages import Action, ActionKind, Blockage, Task
from schemas.site import site_of
from schemas.site_limit import SiteLimit, limit_of

_ASKS_NOTHING = frozenset(
    {
        ActionKind.ANSWER,
        ActionKind.CLOSE_TAB,
        ActionKind.HOVER,
        ActionKind.READ_PAGE,
        ActionKind.SCROLL,
        ActionKind.SWITCH_TAB,
        ActionKind.WAIT,
    }
)
_NAMES_ITS_PAGE = (ActionKind.NAVIGATE, ActionKind.NEW_TAB)
_SURE = (*_NAMES_ITS_PAGE, ActionKind.GO_BACK)
"""They ask for a page, whether it comes or not."""
Pausing = Callable[[], AbstractContextManager[None]]
"""What its body waits for is not the episode's time."""


@dataclass
class Visit:
    hook: Hook | None = None
    """Is told of blocks, and may have them lifted."""
    network: NetworkLog | None = None
    """Is told what the pages send."""
    met: list[Blockage] = field(default_factory=list)
    """By this attempt, and by those before it that it follows."""
    turns: Turns | None = None
    limits: Mapping[str, SiteLimit] = field(default_factory=dict)
    """By site."""
    _url: str = ""
    """Of the page that is shown."""
    _is_played: bool = False
    """By the worker itself, which has no limit."""

    def begin(self, opening: Opening) -> None:
        self._is_played, self._url = opening.site is not None, opening.url

    def showed(self, url: str) -> None:
        """Another page may be there."""
        self._url = url

    @asynccontextmanager
    async def turn(self, action: Action | None, egress: str, pausing: Pausing) -> AsyncIterator[Turn]:
        """Its body carries out an action, or opens the first page, when that is its turn at the site that is asked for a page.

        Raises:
            NoTurn: that did not come in time.
            BusError: the bus could not be asked.
        """
        site = site_of(self._asked(action))
        limit = limit_of(site, self.limits)
        if self.turns is None or not site or not limit.limits:
            yield Turn()
            return
        with pausing():
            turn = await self.turns.wait(site, egress, limit)
        async with self.turns.under_way(turn):
            yield turn

    def led_to(self, performed: Performed, action: Action, turn: Turn) -> None:
        """What an action came to: one that asked the site for nothing gives its turn back."""
        turn.is_used = performed.num_documents > 0 or action.kind in _SURE

    def _asked(self, action: Action | None) -> str:
        """The page whose site is asked for another; empty: none is."""
        if self._is_played or (action is not None and action.kind in _ASKS_NOTHING):
            return ""
        named = web_address(action.text) if action is not None and action.kind in _NAMES_ITS_PAGE else ""
        return named or web_address(self._url)

    async def faced(
        self, performed: Performed, session: Session, task: Task, *, attempt: int, step: int, pausing: Pausing
    ) -> Performed:
        """Notes a block that an action led to, and has it lifted where somebody can. Raises `BrowserError`."""
        if performed.blockage is None:
            return performed
        found = msgspec.structs.replace(performed.blockage, attempt=attempt, step=step)
        if self.hook is not None and not found.elsewhere:
            with pausing():
                lifted = await self.hook.lifts(BlockedPage(found, task, session))
            if lifted:
                await session.pass_over_blockage()
                found = msgspec.structs.replace(found, lifted=True)
        if not any(msgspec.structs.replace(each, step=step) == found for each in self.met):
            # A page elsewhere stays where it is for as long as the policy likes.
            self.met.append(found)
        return replace(performed, blockage=None if found.lifted else found)
