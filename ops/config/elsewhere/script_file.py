"""Reads a launch script's settings as values by their full keys: those of the command whose words are such as `a.b=c`.

Invariant: each word of that command that may be a setting is a value, a key that is taken away, or stands in `unread`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import dropwhile

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from ops.config.elsewhere.shell_expansion import MAYBE, OPEN, Variables
from ops.config.elsewhere.shell_words import Command, commands
from ops.config.elsewhere.written import Open

_SETTING = re.compile(r"(\+\+|\+|~)?([A-Za-z_][\w-]*(?:[./@][\w,-]+)*)(?:=(?!=)(.*))?", re.DOTALL)
_WITHIN = re.compile(r"(^|\s)[+~]{0,2}[A-Za-z_]\w*\.[\w.]+=")
_OPTION = re.compile(r"(--[a-z][\w-]*)(?:=(.*))?", re.DOTALL)
_OF_HYDRA = ("--config-name", "--config-path", "--config-dir")
_NO_PROGRAMS = {
    "pip",
    "pip3",
    "conda",
    "apt",
    "apt-get",
    "git",
    "sed",
    "awk",
    "grep",
    "echo",
    "printf",
    "tee",
    "cat",
    "test",
    "[",
}
_NO_PROGRAMS |= {"[[", "export"}
_NESTED, _SHOWN = 3, 200
_OTHER = "another command of the script, which is not read: import a script with it alone"
_OPEN_WORD = "whoever starts the script knows what it stands for: write its settings as keys of ours"
_NO_SETTING = "it is no setting that is understood: write it as a key of ours"


@dataclass
class Script:
    """What one command says."""

    command: str = ""
    function: str = ""
    values: dict[str, object] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    """Keys that are taken away there, by `~key`."""
    conditional: set[str] = field(default_factory=set)
    """Keys whose values depend on a branch of the script: the last one that it has is taken."""
    unread: dict[str, str] = field(default_factory=dict)
    """What may hold settings and is not understood, as it stands there, with what to do about it."""


def script_values(text: str, is_known: Callable[[str], bool] = lambda _: True) -> Script:
    """Of the command with the most known keys, the first of several; a function that nobody calls has none.

    Never fails: what cannot be understood is `Open`.
    """
    called: set[str] = set()
    found = list(_read(text, Variables(), called, 0))
    found = [each for each in found if not each.function or each.function in called]
    chosen = max(found, key=lambda each: sum(map(is_known, (*each.values, *each.removed))), default=Script())
    chosen.unread |= {each.command: _OTHER for each in found if each is not chosen}
    return chosen


def _read(text: str, variables: Variables, called: set[str], depth: int) -> Iterator[Script]:
    for command in commands(text, variables):
        called.add(command.words[0])
        nested = [word for word in command.words if re.search(r"\s", word) and _WITHIN.search(word)]
        scripts = [word for word in nested if (pair := _one(word)) is None or "." not in pair[1]]
        if (own := _settings(command, [word for word in command.words if word not in scripts])) is not None:
            yield own
        for word in scripts if depth < _NESTED and not _is_no_program(command.words) else ():
            # A script in quotes, as tmux is sent it: its words are those of another shell.
            for inner in _read(word.replace(OPEN, ""), variables, called, depth + 1):
                inner.function = inner.function or command.function
                yield inner


def _settings(command: Command, words: list[str]) -> Script | None:
    if words[:1] == ["env"]:
        words = list(dropwhile(lambda word: "=" in word, words[1:]))
    pairs = [(word, _one(word)) for word in words]
    if _is_no_program(words) or not any(
        pair and "." in pair[1] and (pair[2] is not None or pair[0] == "~") for _, pair in pairs
    ):
        return None
    found = Script(_shown(" ".join(words))[:_SHOWN], command.function)
    for index, (word, pair) in enumerate(pairs):
        option = _OPTION.fullmatch(word)
        if pair is not None and (pair[2] is not None or pair[0] == "~"):
            _take(found, word, *pair)
        elif option and option[1] in _OF_HYDRA:
            _take(found, word, "", option[1], option[2] or next(iter(words[index + 1 : index + 2]), ""))
        elif not option and "=" in word.replace("==", "") and index:
            found.unread[_shown(word)] = _OPEN_WORD if OPEN in word else _NO_SETTING
        elif word.startswith(OPEN) and ("@" in word or "*" in word or (found.values and not words[index - 1].startswith("-"))):
            found.unread[_shown(word)] = _OPEN_WORD
    return found


def _is_no_program(words: list[str]) -> bool:
    """Whether it is a command whose words are no settings, whatever they look like."""
    return any(word.rpartition("/")[2] in _NO_PROGRAMS for word in words[:3])


def _one(word: str) -> tuple[str, str, str | None] | None:
    pair = _SETTING.fullmatch(word.replace(MAYBE, ""))
    return None if pair is None else (pair[1] or "", pair[2].partition("@")[0], pair[3])


def _shown(text: str) -> str:
    return text.replace(OPEN, "").replace(MAYBE, "")


def _take(found: Script, word: str, sign: str, key: str, value: str | None) -> None:
    found.conditional.discard(key)
    if MAYBE in word:
        found.conditional.add(key)
    if sign == "~":
        found.values.pop(key, None)
        found.removed.add(key)
        return
    found.removed.discard(key)
    text = (value or "").replace(MAYBE, "")
    found.values[key] = Open(_shown(text)) if OPEN in text else _parsed(text)


def _parsed(text: str) -> object:
    """As Hydra reads an override's value; text that it cannot read is taken as it is."""
    if len(text) > 2_000:
        return text
    try:
        override: Override = OverridesParser.create().parse_override(f"key={text}")
        if override.is_sweep_override():
            return text
        value: object = override.value()
    except (HydraException, RecursionError):
        return text
    return value if isinstance(value, str | int | float | bool | list | dict) or value is None else text
