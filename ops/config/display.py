"""A resolved configuration as YAML that loads again, each value with its origin behind it; and as JSON."""

import json
from collections.abc import Iterator, Sequence

import yaml
from rich.text import Text

from ops.config.resolved import Resolved, Value

_WIDEST = 56
"""Column of the origins where values are longer."""


def as_yaml(resolved: Resolved, *, changed: bool = False) -> Iterator[Text]:
    """Lines. With `changed`, only what differs from the defaults."""
    values = [value for value in resolved.values.values() if value.is_changed or not changed]
    lines = list(_lines(values))
    column = min(_WIDEST, max((len(line) for line, _ in lines), default=0)) + 2
    for line, value in lines:
        yield _styled(line, value, column)
    for note in resolved.notes:
        where = resolved.written.get(note.key, "")
        yield Text(f"# {note.key}{f' ({where})' if where else ''}: {note.sentence}", style="yellow")


def as_json(resolved: Resolved, *, changed: bool = False) -> str:
    """`values` by key, and `notes` on what has no effect."""
    values = {
        value.key: {"value": value.value, "origin": value.origin, "changed": value.is_changed}
        for value in resolved.values.values()
        if value.is_changed or not changed
    }
    notes = [{"key": note.key, "note": note.sentence} for note in resolved.notes]
    return json.dumps({"values": values, "notes": notes}, indent=2, ensure_ascii=False)


def scalar(value: object) -> str:
    """On one line, as YAML has it."""
    if isinstance(value, str) and "\n" in value:
        return json.dumps(value)
    text = str(yaml.safe_dump(value, default_flow_style=True, width=float("inf"), allow_unicode=True, sort_keys=False))
    return text.removesuffix("...\n").strip()


def _lines(values: Sequence[Value]) -> Iterator[tuple[str, Value | None]]:
    """Each line, and the value that it holds; a group's own line holds none."""
    above: tuple[str, ...] = ()
    for value in values:
        *groups, name = value.key.split(".")
        common = next((i for i, pair in enumerate(zip(above, groups, strict=False)) if pair[0] != pair[1]), len(groups))
        common = min(common, len(above))
        for depth in range(common, len(groups)):
            yield f"{'  ' * depth}{groups[depth]}:", None
        above = tuple(groups)
        yield f"{'  ' * len(groups)}{name}: {scalar(value.value)}", value


def _styled(line: str, value: Value | None, column: int) -> Text:
    if value is None:
        return Text(line, style="bold cyan")
    name, _, said = line.partition(": ")
    text = Text.assemble((name, "cyan"), ": ", (said, "bold" if value.is_changed else ""))
    text.append(" " * max(2, column - len(line)))
    text.append(f"# {value.origin}", style="dim" if value.origin == "default" else "green")
    return text
