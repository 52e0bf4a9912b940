"""Lists the commands under their headings, and builds the parser of the one that is called: no other module is loaded."""

import argparse
import shutil
import textwrap
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version
from types import ModuleType

_COLUMN = 16


@dataclass(frozen=True)
class Command:
    """One subcommand. Its module in `ops.commands` has `add_arguments(parser)`, `run(options)` and mostly an `EXAMPLE`."""

    name: str
    summary: str
    """What it does, without capital and full stop."""
    shared: str = ""
    """The module, where several commands share one, or the name is none of Python's."""

    @property
    def module(self) -> str:
        return self.shared or self.name.replace("-", "_")

    def load(self) -> ModuleType:
        return import_module(f"ops.commands.{self.module}")


Headings = dict[str, tuple[Command, ...]]


def parser_of(headings: Headings, called: str) -> argparse.ArgumentParser:
    """Knows every command by name, and the arguments of the one that is called."""
    parser = argparse.ArgumentParser(
        prog="millrace",
        usage="millrace COMMAND [ARGUMENT ...]\n       millrace COMMAND --help",
        description="Reinforcement learning for visual web agents over NATS JetStream.",
        epilog=_listed(headings),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"millrace {version('millrace')}", help="say which this is")
    # argparse knows no headings for commands: it is given no summaries to list, and the epilog lists them all.
    parsers = parser.add_subparsers(required=True, prog=parser.prog, metavar="COMMAND", help=argparse.SUPPRESS)
    for command in (command for commands in headings.values() for command in commands):
        if command.name != called:
            parsers.add_parser(command.name)
            continue
        module = command.load()
        example = getattr(module, "EXAMPLE", "").format(command=command.name)
        own = add_command(parsers, command.name, command.summary, example=example)
        own.set_defaults(run=module.run, parser=own, command=command.name)
        module.add_arguments(own)
    return parser


def require_command(parser: argparse.ArgumentParser, headings: Headings, called: str) -> None:
    """Ends the process where there is no such command, with the nearest one's name in place of a list of all."""
    names = [command.name for commands in headings.values() for command in commands]
    if called not in names:
        nearest = next(iter(get_close_matches(called, names, n=1)), "millrace --help, which lists them")
        parser.error(f"there is no command {called!r}: write {nearest}")


def add_command(
    parsers: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, summary: str, *, example: str = ""
) -> argparse.ArgumentParser:
    """Adds one command, or an action of one.

    Args:
        summary: what it does, without capital and full stop.
        example: whole command lines.
    """
    return parsers.add_parser(
        name,
        description=_filled(f"{summary[0].upper()}{summary[1:]}."),
        epilog=f"for example:\n{textwrap.indent(example, '  ')}" if example else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _listed(headings: Headings) -> str:
    parts = (
        [f"{heading}:", *(_filled(command.summary, first=f"  {command.name}", column=_COLUMN) for command in commands)]
        for heading, commands in headings.items()
    )
    return "\n\n".join("\n".join(part) for part in parts)


def _filled(text: str, *, first: str = "", column: int = 0) -> str:
    """As wide as argparse's own lines, from `column` on, behind `first`."""
    width = max(40, shutil.get_terminal_size().columns - 2)
    return textwrap.fill(text, width, initial_indent=first.ljust(column), subsequent_indent=" " * column)
