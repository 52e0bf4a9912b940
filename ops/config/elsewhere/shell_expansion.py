"""Works out what `$…` in a shell script stands for, from what the script has set; the shell is never asked. Pure."""

import ast
import operator
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

OPEN = "\x00"
"""Around the text of an expansion whose value is not known."""
MAYBE = "\x01"
"""Behind each word that a variable was given under a condition."""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONGEST = 50_000
"""Characters of a word; no setting is longer."""
_DEEPEST = 20
_WITH_DEFAULT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*|[0-9]+)(:?[-=+]|##\*/|$)")
_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


@dataclass
class Variables:
    """What the script has set so far."""

    values: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, list[str]] = field(default_factory=dict)

    def set(self, name: str, value: str, *, adds: bool, maybe: bool) -> None:
        """`maybe`: under a condition, so that it may be another one."""
        old = self.values.get(name, "")
        if maybe and (adds or value != old):
            value = marked(value, frozenset(old.split()))
        self.values[name] = (old + value if adds else value)[:LONGEST]
        self.arrays.pop(name, None)

    def forget(self, names: Iterable[str], *, fills: bool) -> None:
        """They are no longer set; with `fills`, to something that only a run would know."""
        for name in names:
            self.values.pop(name, None)
            self.arrays.pop(name, None)
            if fills and NAME.fullmatch(name):
                self.values[name] = f"{OPEN}${name}{OPEN}"


def marked(text: str, known: Collection[str] = ()) -> str:
    """A text with `MAYBE` behind each word that is not known already; behind nothing where it is empty."""
    if not text.strip():
        return text + MAYBE
    return re.sub(r"\S+", lambda word: word[0] if word[0] in known else word[0] + MAYBE, text)


def expansion(text: str, at: int, variables: Variables, depth: int) -> tuple[str | list[str], int]:
    """The value of what begins with `$` or a backtick at `at`, and where it ends."""
    if text.startswith("$((", at):
        end = _closing(text, at + 1, "(", ")")
        return _arithmetic(text[at + 3 : end - 1], variables, depth), end + 1
    if text.startswith("$(", at) or text[at] == "`":
        return _substitution(text, at, variables, depth)
    if text.startswith("${", at):
        end = _closing(text, at + 1, "{", "}")
        return _braced(text[at + 2 : end], variables, depth), end + 1
    if found := NAME.match(text, at + 1):
        return _variable(found[0], variables), found.end()
    return _special(text[at + 1 : at + 2], at)


def _special(name: str, at: int) -> tuple[str, int]:
    """`$@` is what is written behind the script's name."""
    if name and name in "0123456789#?$!-@*":
        return f"{OPEN}${name}{OPEN}", at + 2
    return "$", at + 1


def _variable(name: str, variables: Variables) -> str:
    if name in variables.arrays:
        return next(iter(variables.arrays[name]), "")
    return variables.values.get(name, f"{OPEN}${name}{OPEN}")


def _braced(inner: str, variables: Variables, depth: int) -> str | list[str]:
    if (name := inner.removesuffix("[@]").removesuffix("[*]")) != inner:
        return list(variables.arrays.get(name, [variables.values.get(name, f"{OPEN}${{{inner}}}{OPEN}")]))
    found = _WITH_DEFAULT.match(inner)
    if found is None:
        return f"{OPEN}${{{inner}}}{OPEN}"
    name, sign, value = found[1], found[2], _variable(found[1], variables)
    if sign == "##*/":
        return value.rpartition("/")[2]
    is_set = name in variables.values or name in variables.arrays
    if sign.endswith("+") and not is_set:
        return f"{OPEN}${{{inner}}}{OPEN}"
    empty = not is_set or (sign.startswith(":") and not value.replace(MAYBE, ""))
    other = _plain(inner[found.end() :], variables, depth + 1)
    return {"-": other if empty else value, "=": other if empty else value, "+": "" if empty else other}.get(sign[-1:], value)


def _plain(text: str, variables: Variables, depth: int) -> str:
    """The expansions in a text that is split into no words."""
    if depth > _DEEPEST:
        return f"{OPEN}{text[:200]}{OPEN}"
    out, at = "", 0
    while at < len(text) and len(out) < LONGEST:
        if text[at] in "$`":
            found, at = expansion(text, at, variables, depth)
            out += " ".join(found) if isinstance(found, list) else found
        else:
            out += "" if text[at] in "\"'" else text[at]
            at += 1
    return out


def _substitution(text: str, at: int, variables: Variables, depth: int) -> tuple[str, int]:
    """Of commands `basename` alone is known."""
    end = text.find("`", at + 1) if text[at] == "`" else _closing(text, at + 1, "(", ")")
    end = len(text) if end < 0 else end
    inner = text[at + 1 : end] if text[at] == "`" else text[at + 2 : end]
    name, _, rest = inner.strip().partition(" ")
    if name == "basename" and depth < _DEEPEST and " " not in rest.strip():
        return _plain(rest.strip(), variables, depth + 1).rstrip("/").rpartition("/")[2], end + 1
    return f"{OPEN}{text[at : end + 1][:200]}{OPEN}", end + 1


def _closing(text: str, at: int, opens: str, closes: str) -> int:
    """Where the bracket that opens at `at` is closed; the text's end where it is not."""
    depth = 0
    for index in range(at, len(text)):
        depth += (text[index] == opens) - (text[index] == closes)
        if depth == 0:
            return index
    return len(text)


def _arithmetic(expression: str, variables: Variables, depth: int) -> str:
    """Sums, products and whole quotients of numbers and variables."""
    said = f"{OPEN}$(({expression[:200]})){OPEN}"
    text = NAME.sub(lambda found: _variable(found[0], variables), _plain(expression, variables, depth + 1))
    if len(text) > 300 or OPEN in text:
        return said
    maybe = MAYBE if MAYBE in text else ""
    try:
        return str(_number(ast.parse(text.replace(MAYBE, "").replace("/", "//").strip(), mode="eval").body)) + maybe
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return said


def _number(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return int(_OPERATIONS[type(op)](_number(left), _number(right)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand)
    raise ValueError("no whole number")
