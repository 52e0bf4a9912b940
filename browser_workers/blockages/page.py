"""Defines what a hook is given: a page that keeps the agent out, to be looked at, not to be acted on."""

from dataclasses import dataclass, field

from browser_workers.blockages.recognition import sentence
from browser_workers.browser import Session
from schemas.messages import Blockage, Screenshot, Task


@dataclass(frozen=True, slots=True)
class BlockedPage:
    """Its methods raise `BrowserError` when the page is gone."""

    blockage: Blockage
    task: Task
    session: Session = field(repr=False)

    @property
    def sentence(self) -> str:
        """What happened, for a person."""
        return sentence(self.blockage)

    async def url(self) -> str:
        return (await self.session.state()).url

    async def screenshot(self) -> Screenshot:
        return (await self.session.view()).screenshot

    async def lets_in(self) -> bool:
        """Whether the page that is there now is no block of its site any more."""
        found = await self.session.blockage()
        return found is None or found.elsewhere
