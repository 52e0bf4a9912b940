"""Ends a flood of dialogs or windows that a page makes."""

from contextlib import suppress
from pathlib import Path

from browser_workers.chromium.tab import Tab
from schemas.errors import BrowserError

_SCRIPT = (Path(__file__).parent / "scripts" / "silence.js").read_text()
_TIMEOUT_S = 5.0


async def end_script(tab: Tab) -> None:
    """Ends what the page's scripts are doing, an endless loop included; what they have planned for later still happens."""
    with suppress(BrowserError):
        await tab.send("Runtime.terminateExecution", timeout_s=_TIMEOUT_S)


async def silence(tab: Tab) -> None:
    """From now on, the document that is there shows no dialogs and opens no windows."""
    await end_script(tab)
    with suppress(BrowserError):
        await tab.send("Runtime.evaluate", {"expression": _SCRIPT}, timeout_s=_TIMEOUT_S)
