"""Mouse and keyboard of a tab. Events go out back to back; the answer to the last says that all are handled."""

from browser_workers.cdp import CallRefused, Json
from browser_workers.chromium_tab import Tab

Point = tuple[int, int]
_KEYSTROKES_LIMIT = 300
"""Longer texts are inserted in one piece."""


async def hover(tab: Tab, point: Point) -> None:
    await _dispatch(tab, "Input.dispatchMouseEvent", _mouse("mouseMoved", point))


async def click(tab: Tab, point: Point) -> None:
    pressed: Json = {"button": "left", "buttons": 1, "clickCount": 1}
    released: Json = {"button": "left", "buttons": 0, "clickCount": 1}
    await _dispatch(
        tab,
        "Input.dispatchMouseEvent",
        _mouse("mouseMoved", point),
        _mouse("mousePressed", point) | pressed,
        _mouse("mouseReleased", point) | released,
    )


async def scroll(tab: Tab, point: Point, delta_y: int) -> None:
    """By `delta_y` pixels, downwards when positive."""
    await _dispatch(tab, "Input.dispatchMouseEvent", _mouse("mouseWheel", point) | {"deltaX": 0, "deltaY": delta_y})


async def replace_text(tab: Tab, text: str) -> None:
    """Replaces what the focused field holds and presses Enter."""
    select_all: Json = {"type": "rawKeyDown", "key": "a", "code": "KeyA", "modifiers": 2, "commands": ["selectAll"]}
    await _dispatch(tab, "Input.dispatchKeyEvent", select_all, _key("keyUp", "a") | {"modifiers": 2}, *_press("Delete", 46))
    if len(text) > _KEYSTROKES_LIMIT:
        await _dispatch(tab, "Input.insertText", {"text": text})
    else:
        await _dispatch(tab, "Input.dispatchKeyEvent", *(event for character in text for event in _stroke(character)))
    await _dispatch(tab, "Input.dispatchKeyEvent", *_press("Enter", 13, "\r"))


def _mouse(kind: str, point: Point) -> Json:
    return {"type": kind, "x": point[0], "y": point[1]}


def _key(kind: str, key: str) -> Json:
    return {"type": kind, "key": key}


def _press(key: str, code: int, text: str = "") -> tuple[Json, Json]:
    common: Json = {"code": key, "windowsVirtualKeyCode": code}
    down: Json = {"text": text} if text else {}
    return _key("keyDown" if text else "rawKeyDown", key) | common | down, _key("keyUp", key) | common


def _stroke(character: str) -> tuple[Json, Json]:
    if character == "\n":
        return _press("Enter", 13, "\r")
    return _key("keyDown", character) | {"text": character}, _key("keyUp", character)


async def _dispatch(tab: Tab, method: str, *events: Json) -> None:
    """A page that goes away under the input is no failure: what comes after it says what happened."""
    for event in events[:-1]:
        tab.post(method, event)
    if events:
        try:
            await tab.call(method, events[-1])
        except CallRefused:
            return
