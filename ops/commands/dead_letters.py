"""Lists, shows and sends again what no worker could handle."""

import argparse
import sys
from typing import Any

import msgspec
from rich.table import Table
from rich.text import Text

from bus.ports import Bus
from bus.subjects import Subjects
from ops.commands.arguments import add_run_dir, count, settle_run_dir
from ops.commands.execution import interruptible
from ops.commands.listing import add_command
from ops.console.json_lines import json_lines
from ops.console.record_lines import without_bytes
from ops.console.terminal import Console
from ops.run.dead_letters import Letter, not_resendable, numbered, read_letters, resend
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.served import served
from schemas.errors import ConfigurationError
from schemas.text import spelled, visible

EXAMPLE = "millrace dead-letters list --run-dir runs/mine\nmillrace dead-letters resend 3 --run-dir runs/mine"
_HEX_SHOWN = 512
_REASON_SHOWN = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, dest="action", metavar="ACTION")
    listing = add_command(actions, "list", "list every letter, oldest first")
    listing.add_argument("--json", action="store_true", help="JSON lines in place of a table")
    show = add_command(actions, "show", "show one letter with its message")
    show.add_argument("number", type=count, metavar="N", help="as in the list")
    show.add_argument("--json", action="store_true", help="JSON in place of text")
    resend = add_command(actions, "resend", "put the message back on its queue")
    resend.add_argument("number", nargs="?", metavar="N", help="as in the list")
    resend.add_argument("--all", action="store_true", help="every letter that was not sent again yet")
    resend.add_argument("--again", action="store_true", help="also when it was sent again before")
    for action, settle in ((listing, None), (show, None), (resend, _settle_resend)):
        add_run_dir(action, settle=settle)


def _settle_resend(options: argparse.Namespace) -> None:
    """A first word that is no number is the run's folder: behind `--all` stands no N."""
    if options.number is not None and not options.number.isdecimal():
        options.number, options.folder = options.folder, options.number
    settle_run_dir(options)
    try:
        options.number = None if options.number is None else count(options.number)
    except argparse.ArgumentTypeError as error:
        options.parser.error(f"argument N: {error}")


@interruptible
async def run(options: argparse.Namespace) -> int:
    folder = RunFolder(options.run_dir.resolve())
    config = folder.load()
    subjects = subjects_of(config)
    role = "admin" if options.action == "resend" else "monitor"
    async with served(folder, config), join(folder, config, role=role, name="dead-letters") as bus:
        letters = await read_letters(bus, subjects)
        match options.action:
            case "list":
                await _list(letters, as_json=options.json)
            case "show":
                await _show(numbered(letters, options.number), as_json=options.json)
            case _:
                return await _resend(bus, subjects, letters, options)
    return 0


async def _list(letters: list[Letter], *, as_json: bool) -> None:
    if as_json:
        async with json_lines() as lines:
            for letter in letters:
                await lines.write(_fields(letter))
        return
    Console().print(letters_table(letters) if letters else "no dead letters")


def letters_table(letters: list[Letter]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("number", "time", "stream", "message", "subject", "reason", "worker", "sent again"):
        table.add_column(heading, overflow="fold")
    for letter in letters:
        resent = f"{letter.resent_at:%Y-%m-%d %H:%M:%S}" if letter.resent_at else ""
        cells = (
            str(letter.number), f"{letter.time:%Y-%m-%d %H:%M:%S}", letter.stream, letter.kind, letter.subject,
            visible(letter.reason, _REASON_SHOWN), letter.worker, resent,
        )  # fmt: skip
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


async def _show(letter: Letter, *, as_json: bool) -> None:
    fields = _fields(letter)
    message = letter.message
    if message is not None:
        fields["content"] = without_bytes(msgspec.to_builtins(message, builtin_types=(bytes,)))
    else:
        fields["hex"] = letter.data.hex()
    if as_json:
        async with json_lines() as lines:
            await lines.write(fields)
        return
    content = fields.pop("content", None)
    hexadecimal = str(fields.pop("hex", ""))
    for name, value in fields.items():
        print(f"{name:<12} {visible(str(value)) if value is not None else ''}")
    if content is not None:
        print(spelled(msgspec.json.format(msgspec.json.encode(content), indent=2).decode()))
    elif hexadecimal:
        more = f" ... ({len(letter.data)} bytes)" if len(hexadecimal) > 2 * _HEX_SHOWN else ""
        print(f"{'hex':<12} {hexadecimal[: 2 * _HEX_SHOWN]}{more}")


async def _resend(bus: Bus, subjects: Subjects, letters: list[Letter], options: argparse.Namespace) -> int:
    if options.all == (options.number is not None):
        raise ConfigurationError("say which: `millrace dead-letters resend N`, or `resend --all`")
    chosen = letters if options.all else [numbered(letters, options.number)]
    failed = 0
    for letter in chosen:
        if options.all and ((letter.resent_at and not options.again) or not_resendable(subjects, letter)):
            print(f"letter {letter.number} left: {not_resendable(subjects, letter) or 'it was sent again before'}")
            continue
        try:
            seq = await resend(bus, subjects, letter, again=options.again)
        except ConfigurationError as error:
            if not options.all:
                raise
            failed += 1
            print(f"millrace: {error}", file=sys.stderr)
            continue
        warning = "" if letter.message is not None else "; this version cannot read it, so a newer worker has to be running"
        print(f"letter {letter.number} is record {seq} of {letter.stream}{warning}")
    return 1 if failed else 0


def _fields(letter: Letter) -> dict[str, Any]:
    return {
        "number": letter.number,
        "time": letter.time,
        "stream": letter.stream,
        "seq": letter.seq,
        "subject": letter.subject,
        "consumer": letter.consumer,
        "worker": letter.worker,
        "reason": letter.reason,
        "message": letter.kind,
        "num_bytes": len(letter.data),
        "resent_at": letter.resent_at,
    }
