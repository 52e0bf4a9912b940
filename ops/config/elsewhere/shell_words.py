"""Splits a shell script into commands of words, as text: nothing is run, no file and no variable of this machine is read.

Quotes, continued lines, comments, here-documents, arrays and the expansions of variables that the script sets are understood.
What only a run would know (`$(hostname)`, `$1`, `$HOME`) stands between two `OPEN` marks, and what is set in a branch, a loop,
a function, brackets, or behind `&&`, `||` and `|` has `MAYBE` marks (`shell_expansion`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ops.config.elsewhere.shell_expansion import LONGEST, OPEN, Variables, expansion, marked

_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_HERE = re.compile(r"<<-?[ \t]*\\?(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")
_OPERATOR = re.compile(r"&&|\|\|?|\n|[;&()]")
_CHAINS = ("&&", "||", "|")
_KEYWORD = re.compile(r"(?:if|then|elif|else|fi|while|until|do|done|esac|time|[{}!])(?![^\s;&|()])")
_OPENING, _CLOSING = ("if", "while", "until", "{"), ("fi", "done", "esac", "}")
_LOOP = re.compile(r"(?:for|select)[ \t]+(?:\(\(.{0,1000}?\)\)|([A-Za-z_][A-Za-z0-9_]*)[^\n;]*)", re.DOTALL)
_CASE = re.compile(r"case[ \t][^\n]{0,1000}?[ \t]in(?=\s)")
_FUNCTION = re.compile(r"(?:function[ \t]+([\w:-]+)(?:[ \t]*\(\s*\))?|([\w:-]+)[ \t]*\([ \t]*\))\s*([{(])")
_SPLIT = re.compile(rf"(?:{OPEN}[^{OPEN}]*{OPEN}|\S)+")
"""At spaces, but for those in the text of what is not known."""
_DECLARING = (["export"], ["local"], ["declare"], ["readonly"], ["typeset"])
_UNSET, _FILLED = ("unset",), ("read", "readarray", "mapfile")


class _Block(NamedTuple):
    """What is open: a branch, a loop, brackets; with all around it."""

    kind: str
    function: str
    is_conditional: bool


@dataclass(frozen=True, slots=True)
class Command:
    words: list[str]
    function: str
    """In whose body it stands; empty in none's."""


def commands(text: str, variables: Variables) -> Iterator[Command]:
    """Each simple command's words, assignments before it left out; what it assigns is in `variables` behind it."""
    scanner = _Scanner(text.replace("\r\n", "\n"), variables)
    while not scanner.ended:
        words = scanner.command()
        if words and words[0] in _UNSET + _FILLED:
            variables.forget(words[1:], fills=words[0] in _FILLED)
        elif words:
            yield Command(words, scanner.function)


class _Scanner:
    def __init__(self, text: str, variables: Variables) -> None:
        self._text, self._at, self._variables = text, 0, variables
        self._blocks = [_Block("", "", False)]
        self._chained = False
        self._here_ends: list[str] = []

    @property
    def ended(self) -> bool:
        return self._at >= len(self._text)

    @property
    def function(self) -> str:
        return self._blocks[-1].function

    def command(self) -> list[str]:
        """Up to its end."""
        words: list[str] = []
        begun = declaring = False
        while not self.ended:
            char = self._text[self._at]
            if char in " \t":
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif char == "#":
                self._skip_line()
            elif not begun and self._opened_or_closed():
                pass
            elif found := _OPERATOR.match(self._text, self._at):
                self._operator(found[0], begun=begun)
                if begun:
                    return words
            elif char in "<>":
                self._redirection()
            else:
                begun = True
                if (not words or declaring) and (assigned := _ASSIGNED.match(self._text, self._at)):
                    self._assignment(assigned)
                    continue
                new = self._word()
                declaring = declaring or (not words and new in _DECLARING)
                words.extend([] if declaring else new)
        return words

    def _open(self, kind: str, function: str = "") -> None:
        around = self._blocks[-1]
        conditional = around.is_conditional or kind != "{" or bool(function)
        self._blocks.append(_Block(kind, function or around.function, conditional))

    def _opened_or_closed(self) -> bool:
        """Whether a keyword stands here, which is read over: assignments may follow it."""
        if function := _FUNCTION.match(self._text, self._at):
            self._open(function[3], function[1] or function[2])
            self._at = function.end()
        elif loop := _LOOP.match(self._text, self._at):
            self._open("for")
            self._variables.forget([loop[1]] if loop[1] else [], fills=True)
            self._at = loop.end()
        elif case := _CASE.match(self._text, self._at):
            self._open("case")
            self._at = case.end()
        elif keyword := _KEYWORD.match(self._text, self._at):
            if keyword[0] in _OPENING:
                self._open(keyword[0])
            elif keyword[0] in _CLOSING and len(self._blocks) > 1:
                self._blocks.pop()
            self._at = keyword.end()
        else:
            return False
        return True

    def _operator(self, sign: str, *, begun: bool) -> None:
        self._at += len(sign)
        if sign == "(":
            self._open(sign)
        elif sign == ")" and self._blocks[-1].kind == "(":
            self._blocks.pop()
            self._chained = False
        elif begun or sign != "\n":
            self._chained = sign in _CHAINS
        if sign == "\n":
            for end in self._here_ends:
                found = re.compile(rf"^[ \t]*{re.escape(end)}[ \t]*$", re.MULTILINE).search(self._text, self._at)
                self._at = found.end() if found else len(self._text)
            self._here_ends.clear()

    def _assignment(self, found: re.Match[str]) -> None:
        name, adds = found[1], bool(found[2])
        self._at = found.end()
        maybe = self._chained or self._blocks[-1].is_conditional
        if self._text.startswith("(", self._at):
            self._at += 1
            items = [marked(item) for item in self._items()] if maybe else self._items()
            old = self._variables.arrays.get(name, []) if adds else []
            self._variables.arrays[name] = [*old, *items][:LONGEST]
        else:
            value = self._word(splits=False) if not self.ended and self._text[self._at] not in " \t\n;&|)" else [""]
            self._variables.set(name, value[0] if value else "", adds=adds, maybe=maybe)

    def _items(self) -> list[str]:
        items: list[str] = []
        while not self.ended and self._text[self._at] != ")":
            char = self._text[self._at]
            if char in " \t\n":
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif char == "#":
                self._skip_line()
            elif char in ";&|(<>":
                self._at += 1
            else:
                items.extend(self._word())
        self._at += 1
        return items

    def _skip_line(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _redirection(self) -> None:
        if found := _HERE.match(self._text, self._at):
            self._here_ends.append(found[2])
            self._at = found.end()
            return
        while not self.ended and self._text[self._at] in "<>&":
            self._at += 1
        while not self.ended and self._text[self._at] in " \t":
            self._at += 1
        if not self.ended and self._text[self._at] not in "\n;&|()":
            self._word()

    def _word(self, *, splits: bool = True) -> list[str]:
        """One word; more where an unquoted expansion has spaces, none where it is empty."""
        parts, quoted = [""], False
        while not self.ended and (char := self._text[self._at]) not in " \t\n;&|()<>":
            if char == "\\":
                parts[-1] += "" if self._text[self._at + 1 : self._at + 2] == "\n" else self._text[self._at + 1 : self._at + 2]
                self._at += 2
            elif char == "'" or self._text.startswith("$'", self._at):
                start = self._at + (1 if char == "'" else 2)
                end = self._text.find("'", start)
                end = len(self._text) if end < 0 else end
                parts[-1] += self._text[start:end]
                self._at, quoted = end + 1, True
            elif char == '"':
                parts, quoted = self._double_quoted(parts), True
            elif char in "$`":
                self._expand(parts, splits=splits)
            else:
                parts[-1] += char
                self._at += 1
            if len(parts[-1]) > LONGEST:
                parts[-1] = f"{OPEN}a very long text{OPEN}"
        return parts if quoted or parts != [""] else []

    def _double_quoted(self, parts: list[str]) -> list[str]:
        self._at += 1
        while not self.ended and (char := self._text[self._at]) != '"':
            if char == "\\" and self._text[self._at + 1 : self._at + 2] in ("$", "`", '"', "\\", "\n"):
                escaped = self._text[self._at + 1]
                parts[-1] += "" if escaped == "\n" else escaped
                self._at += 2
            elif char in "$`":
                self._expand(parts, splits=False)
            else:
                parts[-1] += char
                self._at += 1
        self._at += 1
        return parts

    def _expand(self, parts: list[str], *, splits: bool) -> None:
        found, self._at = expansion(self._text, self._at, self._variables, 0)
        if isinstance(found, list):
            parts[-1:] = [parts[-1] + (found[0] if found else ""), *found[1:]]
        elif splits and len(words := _SPLIT.findall(found)) > 1:
            parts[-1:] = [parts[-1] + words[0], *words[1:]]
        else:
            parts[-1] += found
