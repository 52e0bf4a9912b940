"""Looks whether the page that is shown keeps its visitor out; one that may let a browser in by itself is given a moment."""

import time

import anyio

from browser_workers.blockages.recognition import blockage_of, recognised
from browser_workers.blockages.signs import Sign
from browser_workers.browser import Opening
from browser_workers.chromium.tab import Tab
from browser_workers.chromium.windows import Windows
from browser_workers.network.egress import Egress
from schemas.messages import Blockage
from schemas.site import site_of

_PAUSE_S = 0.25
"""Before a page that checks its visitor is looked at again."""


class BlockWatch:
    """Of one session. On pages that the worker plays itself there is nothing to be found."""

    def __init__(self, windows: Windows, opening: Opening, egress: Egress | None, *, check_s: float) -> None:
        """`check_s`: how long a page may check its visitor."""
        self._windows = windows
        self._begun_on = "" if opening.site is not None else site_of(opening.url)
        self._egress = egress
        self._check_s = check_s
        self._passed_over: tuple[Tab, int, Sign] | None = None
        """A document, and the sign on it that counts no more."""

    async def look(self) -> Blockage | None:
        """The block that is shown, unless it was passed over. Its egress is left alone for the site from now on.

        Raises `PageFailed` or `BrowserLost`.
        """
        if not self._begun_on:
            return None
        until = anyio.current_time() + self._check_s
        blockage, sign = await self._look()
        while sign is not None and sign.passes and anyio.current_time() < until:
            await anyio.sleep(_PAUSE_S)
            blockage, sign = await self._look()
        if blockage is not None and self._egress is not None:
            for site in {blockage.site} if blockage.elsewhere else {blockage.site, self._begun_on}:
                self._egress.note_block(site)
        return blockage

    async def pass_over(self) -> None:
        """Who can tell has said that the document that is shown lets its visitor in, whatever it looks like."""
        tab = await self._windows.active()
        if (sign := recognised(await tab.facts())) is not None:
            self._passed_over = (tab, tab.loading.num_documents, sign)

    async def _look(self) -> tuple[Blockage | None, Sign | None]:
        tab = await self._windows.settled()
        facts = await tab.facts()
        sign = recognised(facts)
        if sign is None or self._passed_over == (tab, tab.loading.num_documents, sign):
            return None, None
        egress = self._egress.name if self._egress is not None else ""
        return blockage_of(facts, sign, begun_on=self._begun_on, egress=egress, now_s=time.time()), sign
