"""Asks a run's hook to have a block lifted.

Invariant: whatever a hook does, an answer comes within its deadline; one that failed is no.
"""

from dataclasses import dataclass

import anyio
import structlog

from browser_workers.block_hooks import BlockHook
from browser_workers.blockages.page import BlockedPage
from bus.fault import Fault
from schemas.browser_config import BrowserConfig
from schemas.errors import BrowserError
from schemas.extensions import BLOCK_HOOKS

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Hook:
    name: str
    asked: BlockHook
    timeout_s: float

    @classmethod
    def of(cls, config: BrowserConfig) -> "Hook | None":
        """None: the run has none. Raises `ConfigurationError`."""
        if config.on_block != "hook":
            return None
        return cls(config.block_hook, BLOCK_HOOKS.find(config.block_hook).made, config.block_hook_timeout_s)

    async def lifts(self, page: BlockedPage) -> bool:
        """Whether the page lets its visitor in by now. Raises `BrowserError`."""
        _log.info("block_hook_asked", hook=self.name, reason=page.sentence)
        lifted = False
        with anyio.move_on_after(self.timeout_s) as patience:
            try:
                lifted = bool(await self.asked(page))
            except BrowserError:
                raise
            except Exception as error:  # noqa: BLE001 - a bulkhead: it is a user's
                _log.error("block_hook_failed", hook=self.name, error=Fault.of(error).error, exc_info=error)
        _log.info("block_hook_answered", hook=self.name, lifted=lifted, too_late=patience.cancelled_caught)
        return lifted
