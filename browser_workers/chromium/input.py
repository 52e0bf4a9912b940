"""Mouse and keyboard of a page. Each call returns when the page has handled the input."""

from playwright.async_api import Page

Point = tuple[int, int]
_KEYSTROKES_LIMIT = 300
"""Longer texts are inserted in one piece."""


async def hover(page: Page, point: Point) -> None:
    await page.mouse.move(*point)


async def click(page: Page, point: Point) -> None:
    await page.mouse.click(*point)


async def scroll(page: Page, point: Point, delta_y: int) -> None:
    """By `delta_y` pixels, downwards when positive."""
    await page.mouse.move(*point)
    await page.mouse.wheel(0, delta_y)


async def replace_text(page: Page, text: str, point: Point | None) -> None:
    """Replaces what the field at `point` holds, or the one with the focus, and presses Enter."""
    if point is not None:
        await click(page, point)
    await page.keyboard.press("ControlOrMeta+A")
    await page.keyboard.press("Delete")
    if len(text) > _KEYSTROKES_LIMIT:
        await page.keyboard.insert_text(text)
    else:
        await page.keyboard.type(text)
    await page.keyboard.press("Enter")
