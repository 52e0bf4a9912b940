"""Names of keys, from the many ways in which models write them to the browser's own."""

import re
from collections.abc import Iterator, Sequence

_MAX_CHORDS = 20
_MODIFIERS = ("Control", "Alt", "Shift", "Meta", "ControlOrMeta")
_NAMED = (
    *_MODIFIERS, "AltGraph", "ArrowDown", "ArrowLeft", "ArrowRight", "ArrowUp", "Backspace", "CapsLock", "ContextMenu",
    "Delete", "End", "Enter", "Escape", "Home", "Insert",
    "NumLock", "PageDown", "PageUp", "Pause", "PrintScreen", "ScrollLock", "Space",
    "Tab", *(f"F{number}" for number in range(1, 13)),
)  # fmt: skip
_SPELLINGS = {
    "ctrl": "Control", "ctl": "Control", "option": "Alt", "opt": "Alt", "cmd": "Meta", "command": "Meta", "win": "Meta",
    "windows": "Meta", "super": "Meta", "esc": "Escape", "return": "Enter", "kpenter": "Enter", "numpadenter": "Enter",
    "del": "Delete", "ins": "Insert", "back": "Backspace", "down": "ArrowDown", "left": "ArrowLeft", "right": "ArrowRight",
    "up": "ArrowUp", "pgdn": "PageDown", "pagedn": "PageDown", "next": "PageDown", "pgup": "PageUp", "prior": "PageUp",
    "spacebar": "Space", "menu": "ContextMenu", "apps": "ContextMenu", "plus": "+", "minus": "-", "caps": "CapsLock",
    "leftctrl": "Control", "controlleft": "Control", "controlright": "Control", "shiftleft": "Shift", "shiftright": "Shift",
    "altleft": "Alt", "altright": "AltGraph", "metaleft": "Meta", "metaright": "Meta", "printscrn": "PrintScreen",
}  # fmt: skip
_BY_SPELLING = {name.lower(): name for name in _NAMED} | _SPELLINGS
_SPACED_PLUS = re.compile(r"(?<=\w)\s*\+\s*(?=\S)")
_SEPARATORS = re.compile(r"[\s_-]+")


def chords(written: str | Sequence[str]) -> tuple[str, ...]:
    """Chords in order, each of key names joined by `+`; empty when anything in it is no key of a keyboard.

    Modifiers hold until the next other key: `["ctrl", "a", "Delete"]` and `"ctrl+a Delete"` are `Control+a`, then `Delete`.
    """
    pieces = _pieces(written) if isinstance(written, str) else written
    found: list[str] = []
    held: list[str] = []
    for piece in pieces:
        for name in _split(piece):
            key = _key(name)
            if key is None:
                return ()
            held.append(key)
            if key not in _MODIFIERS:
                found.append(_chord(held))
                held = []
    if held:
        found.append(_chord(held))
    return tuple(found) if len(found) <= _MAX_CHORDS else ()


def _pieces(written: str) -> list[str]:
    """A key's name of several words, or chords with spaces between them and perhaps around the `+`."""
    return [written] if _key(written) is not None else _SPACED_PLUS.sub("+", written).split()


def _split(piece: str) -> Iterator[str]:
    """Names joined by `+`; one that stands behind another `+`, or alone, is itself a key."""
    if _key(piece) is not None or not piece.strip():
        yield piece
        return
    name = ""
    for character in piece.strip():
        if character == "+" and name:
            yield name.strip()
            name = ""
        else:
            name += character
    if name:
        yield name.strip()


def _key(name: str) -> str | None:
    if name in (" ", "\t", "\n"):
        return {" ": "Space", "\t": "Tab", "\n": "Enter"}[name]
    if len(name) == 1:
        return name if "!" <= name <= "~" else None
    return _BY_SPELLING.get(_SEPARATORS.sub("", name.strip()).lower())


def _chord(keys: Sequence[str]) -> str:
    """Letters are small behind modifiers: a capital would ask for Shift."""
    *modifiers, last = keys
    if modifiers and len(last) == 1:
        last = last.lower()
    return "+".join((*dict.fromkeys(modifiers), last))
