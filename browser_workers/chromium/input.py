"""Mouse and keyboard of a page. Each call returns when the page has handled the input."""

from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Literal

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from browser_workers.actions import Point
from browser_workers.keys import is_paste

_KEYSTROKES_LIMIT = 300
"""Longer texts are inserted in one piece."""
_DRAG_MOVES = 8
"""Moves between the two ends of a drag: pages begin one only after the first few pixels."""


async def hover(page: Page, point: Point) -> None:
    await page.mouse.move(*point)


def click(page: Page, point: Point, *, button: Literal["left", "right"] = "left", times: int = 1) -> Awaitable[None]:
    return page.mouse.click(*point, button=button, click_count=times)


async def drag(page: Page, start: Point, end: Point) -> None:
    await page.mouse.move(*start)
    await page.mouse.down()
    try:
        await page.mouse.move(*end, steps=_DRAG_MOVES)
        # What lies under the pointer at the end learns of it only by a move there.
        await page.mouse.move(*end)
    except PlaywrightError:
        with suppress(PlaywrightError):
            await page.mouse.up()
        raise
    await page.mouse.up()


async def scroll(page: Page, point: Point, delta: tuple[int, int]) -> None:
    """By `delta` pixels, to the right and downwards when positive."""
    await page.mouse.move(*point)
    await page.mouse.wheel(*delta)


async def replace_text(page: Page, text: str, point: Point | None, *, enter: bool) -> None:
    """Replaces what the field at `point` holds, or the one with the focus."""
    if point is not None:
        await click(page, point)
    await page.keyboard.press("ControlOrMeta+A")
    await page.keyboard.press("Delete")
    if len(text) > _KEYSTROKES_LIMIT:
        await page.keyboard.insert_text(text)
    elif text:
        await page.keyboard.type(text)
    if enter:
        await page.keyboard.press("Enter")


async def press(page: Page, chords: Sequence[str], copied: str) -> None:
    """Presses chords one after the other.

    Chromium has one clipboard for all of its contexts. It is never pasted from: `copied` stands for the episode's own.
    """
    for chord in chords:
        if is_paste(chord):
            await page.keyboard.insert_text(copied)
        else:
            await page.keyboard.press(chord)
