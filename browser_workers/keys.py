"""Keys by the names that models give them: pure functions from text to Playwright's names."""

_MODIFIERS = {
    "ctrl": "Control",
    "control": "Control",
    "lctrl": "Control",
    "rctrl": "Control",
    "cmd": "ControlOrMeta",
    "command": "ControlOrMeta",
    "controlormeta": "ControlOrMeta",
    "meta": "Meta",
    "super": "Meta",
    "win": "Meta",
    "windows": "Meta",
    "alt": "Alt",
    "option": "Alt",
    "opt": "Alt",
    "altgraph": "AltGraph",
    "altgr": "AltGraph",
    "shift": "Shift",
}
_NAMES = {
    **_MODIFIERS,
    "esc": "Escape",
    "escape": "Escape",
    "enter": "Enter",
    "return": "Enter",
    "kpenter": "Enter",
    "tab": "Tab",
    "space": "Space",
    "spacebar": "Space",
    "backspace": "Backspace",
    "del": "Delete",
    "delete": "Delete",
    "ins": "Insert",
    "insert": "Insert",
    "up": "ArrowUp",
    "arrowup": "ArrowUp",
    "uparrow": "ArrowUp",
    "down": "ArrowDown",
    "arrowdown": "ArrowDown",
    "downarrow": "ArrowDown",
    "left": "ArrowLeft",
    "arrowleft": "ArrowLeft",
    "leftarrow": "ArrowLeft",
    "right": "ArrowRight",
    "arrowright": "ArrowRight",
    "rightarrow": "ArrowRight",
    "home": "Home",
    "end": "End",
    "pageup": "PageUp",
    "pgup": "PageUp",
    "prior": "PageUp",
    "pagedown": "PageDown",
    "pgdn": "PageDown",
    "pgdown": "PageDown",
    "next": "PageDown",
    "capslock": "CapsLock",
    "numlock": "NumLock",
    "scrolllock": "ScrollLock",
    "printscreen": "PrintScreen",
    "pause": "Pause",
    "menu": "ContextMenu",
    "contextmenu": "ContextMenu",
    "apps": "ContextMenu",
    "plus": "+",
    "minus": "-",
    "comma": ",",
    "period": ".",
    "dot": ".",
    "slash": "/",
    "backslash": "\\",
    "semicolon": ";",
    "quote": "'",
    "equal": "=",
    "equals": "=",
    **{f"f{n}": f"F{n}" for n in range(1, 13)},
    **{f"{prefix}{digit}": str(digit) for prefix in ("digit", "numpad", "kp") for digit in range(10)},
    **{f"key{chr(code)}": chr(code) for code in range(ord("a"), ord("z") + 1)},
}
_PASTE = frozenset({"Control+v", "ControlOrMeta+v", "Control+Shift+v", "ControlOrMeta+Shift+v", "Shift+Insert"})
_MAX_CHORDS = 50


class UnknownKey(ValueError):
    """A name that stands for no key; the message says what to write instead."""


def chords_of(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Playwright's names of chords, as in `("ctrl+A", "esc")` -> `("Control+a", "Escape")`.

    Raises:
        UnknownKey: one of them stands for no key, or there is none, or too many.
    """
    if not keys:
        raise UnknownKey("press needs keys: write names such as Enter, Escape, ArrowDown or Control+a")
    if len(keys) > _MAX_CHORDS:
        raise UnknownKey(f"press takes at most {_MAX_CHORDS} keys at a time: to write text, use type")
    return tuple(chord_of(text) for text in keys)


def chord_of(text: str) -> str:
    """Playwright's name of one chord: modifiers in front, one key behind them, joined by `+`."""
    *modifiers, key = [_key(name, text) for name in _split(text)]
    if any(name not in _MODIFIERS.values() for name in modifiers):
        raise UnknownKey(f"{text[:60]!r} holds down a key that is no modifier: write Control, Shift, Alt or Meta in front")
    if modifiers and len(key) == 1 and "Shift" not in modifiers:
        # `Control+A` means the key with the letter A, not the capital.
        key = key.lower()
    return "+".join([*sorted(set(modifiers)), key])


def is_paste(chord: str) -> bool:
    """Whether Chromium would insert its clipboard."""
    modifiers, _, key = chord.rpartition("+")
    return f"{modifiers}+{key.lower() if len(key) == 1 else key}" in _PASTE


def _split(text: str) -> list[str]:
    """The names in a chord, in which `+` may itself be the last key."""
    if text == " ":
        return [text]
    text = text.strip()
    if text == "+":
        return ["+"]
    if text.endswith("++"):
        return [*_split(text[:-2]), "+"]
    return [name.strip() for name in text.split("+")]


def _key(name: str, chord: str) -> str:
    if len(name) == 1 and " " <= name <= "~":
        return "Space" if name == " " else name
    known = _NAMES.get("".join(character for character in name.lower() if character.isalnum()))
    if known is None:
        raise UnknownKey(
            f"{chord[:60]!r} is no key: write names such as Enter, Escape, ArrowDown or Control+a; to write text, use type"
        )
    return known
