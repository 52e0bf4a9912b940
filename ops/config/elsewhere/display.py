"""Shows what became of every key: a table on a terminal, lines elsewhere, JSON for programs."""

import json
from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ops.config.display import scalar
from ops.config.elsewhere.answer import Answer, Answers
from ops.config.elsewhere.import_file import WrittenFiles
from ops.config.elsewhere.programs import likelier
from ops.config.elsewhere.row import IN_FILE, Kind
from ops.config.elsewhere.written import Open
from schemas.text import visible

_WIDEST = 60
_STYLES = {Kind.OURS: "green", Kind.SAME: "green", Kind.NOTHING: "dim", Kind.INSTEAD: "yellow", Kind.UNKNOWN: "bold red"}
_TITLES = {
    Kind.OURS: "mapped",
    Kind.SAME: "as it is always done here",
    Kind.NOTHING: "no effect here",
    Kind.INSTEAD: "something else instead, which you have to write",
    Kind.UNKNOWN: "unknown",
}
_DEFAULTS = "not written there: what it does then"


def shown(found: Answers, files: WrittenFiles, *, as_lines: bool) -> Iterator[RenderableType]:
    """Group by group, what a person has to look at last."""
    for title, style, group in _groups(found):
        if not group:
            continue
        if as_lines:
            yield from (Text(_line(answer)) for answer in group)
        else:
            yield _table(title, style, group)
    yield Text(_summary(found, files), style="bold red" if found.unknown else "bold")
    if found.unknown and (other := likelier(found.program, [answer.key for answer in found.written])):
        yield Text(f"More of these keys are {other.name}'s: --from {other.option} may be meant.", style="yellow")


def as_json(found: Answers, files: WrittenFiles) -> str:
    """`answers` in the order of the table; `ours` has `deepspeed.` before settings of the DeepSpeed file."""
    return json.dumps(
        {
            "program": found.program.name,
            "written": [str(path) for path in (files.configuration, files.deepspeed) if path is not None],
            "unknown": [answer.key for answer in found.unknown],
            "answers": [
                {
                    "key": answer.key,
                    "value": _plain(answer.value),
                    "kind": answer.kind,
                    "ours": dict(answer.ours),
                    "words": answer.words,
                    "default": answer.is_default,
                }
                for answer in found.all
            ],
        },
        indent=2,
        ensure_ascii=False,
        default=str,
    )


def _groups(found: Answers) -> Iterator[tuple[str, str, list[Answer]]]:
    for kind in Kind:
        of_kind = found.written if kind is Kind.OURS else found.all
        yield _TITLES[kind], _STYLES[kind], [answer for answer in of_kind if answer.kind is kind]
        if kind is Kind.OURS:
            yield _DEFAULTS, "cyan", [answer for answer in found.all if answer.is_default and answer.ours]


def _table(title: str, style: str, group: list[Answer]) -> Table:
    table = Table(
        title=f"{title} ({len(group)})", title_justify="left", title_style=f"bold {style}", box=None, padding=(0, 2, 0, 0)
    )
    has_ours = any(answer.ours for answer in group)
    for name in ("there", "here", "") if has_ours else ("there", ""):
        table.add_column(name, overflow="fold", header_style="dim")
    for answer in group:
        here = (Text(_here(answer.ours)),) if has_ours else ()
        table.add_row(Text(_there(answer)), *here, Text(visible(answer.words), style="dim"))
    return table


def _line(answer: Answer) -> str:
    here = _here(answer.ours).replace("\n", ", ")
    kind = "by default" if answer.is_default and answer.ours else answer.kind
    said = f"{kind}: {_there(answer)}{f' -> {here}' if here else ''}"
    return f"{said} ({visible(answer.words)})" if answer.words else said


def _there(answer: Answer) -> str:
    if not answer.key and answer.value is None:
        return "(no key)"
    text = visible(scalar(_plain(answer.value)))
    shown = text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
    return f"{visible(answer.key)} = {shown}" if answer.key else shown


def _here(values: Mapping[str, object]) -> str:
    """Keys of one group with one value stand together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for key, value in values.items():
        group, _, name = key.removeprefix(IN_FILE).rpartition(".")
        where = " in the DeepSpeed file" if key.startswith(IN_FILE) else ""
        groups.setdefault((group, f"{visible(scalar(value))}{where}"), []).append(name)
    return "\n".join(
        f"{f'{group}.' if group else ''}{names[0] if len(names) == 1 else '{' + ', '.join(names) + '}'} = {value}"
        for (group, value), names in groups.items()
    )


def _summary(found: Answers, files: WrittenFiles) -> str:
    counts = ", ".join(
        f"{number} {_TITLES[kind].partition(',')[0]}"
        for kind in Kind
        if (number := sum(answer.kind is kind for answer in found.written))
    )
    beside = f", with {files.deepspeed}" if files.deepspeed else ""
    total, name = len(found.written), found.program.name
    keys = f"{total} {'key' if total == 1 else 'keys'} of {name}'s"
    return f"{keys}: {counts}. {files.configuration} is written{beside}."


def _plain(value: object) -> object:
    """As YAML and JSON have it."""
    if isinstance(value, Open):
        return value.text
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
