"""What stands on a page as text."""

from browser_workers.actions import MAX_LINES
from browser_workers.chromium.tab import Tab

_TEXT_LIMIT = 40_000


async def page_text(tab: Tab, num_lines: int) -> str:
    """The first lines of the visible text, empty ones left out."""
    num_lines = max(1, min(num_lines, MAX_LINES))
    lines = "document.body.innerText.split('\\n').map((line) => line.trim()).filter((line) => line)"
    return await tab.value_of(f"{lines}.slice(0, {num_lines}).join('\\n').slice(0, {_TEXT_LIMIT})")
