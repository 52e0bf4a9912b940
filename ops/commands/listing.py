"""The commands under their headings: what `millrace --help` lists, and how each command's own help begins and ends."""

import argparse
import shutil
import textwrap
from collections.abc import Callable

Handler = Callable[[argparse.Namespace], int]
"""Runs a command and returns its exit code; `given` in the namespace holds the arguments as they were typed."""
_COLUMN = 16


class Commands:
    """What is added stands under the heading that was begun last."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parser = parser
        self._parser.epilog = ""
        # argparse knows no headings for commands: it is given no summaries to list, and the epilog lists them all.
        self._parsers = parser.add_subparsers(required=True, prog=parser.prog, metavar="COMMAND", help=argparse.SUPPRESS)

    def heading(self, text: str) -> None:
        self._list(f"\n{text}:")

    def add(self, name: str, summary: str, run: Handler, *, example: str = "") -> argparse.ArgumentParser:
        """See `add_command`."""
        self._list(_filled(summary, first=f"  {name}", column=_COLUMN))
        return add_command(self._parsers, name, summary, run, example=example)

    def _list(self, lines: str) -> None:
        self._parser.epilog = f"{self._parser.epilog}{lines}\n".lstrip("\n")


def add_command(
    parsers: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, summary: str, run: Handler, *, example: str = ""
) -> argparse.ArgumentParser:
    """Adds one command; its namespace holds the handler, `run`, and the `parser` that says what is wrong.

    Args:
        summary: what it does, without capital and full stop.
        example: whole command lines.
    """
    parser = parsers.add_parser(
        name,
        description=_filled(f"{summary[0].upper()}{summary[1:]}."),
        epilog=f"for example:\n{textwrap.indent(example, '  ')}" if example else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run, parser=parser)
    return parser


def _filled(text: str, *, first: str = "", column: int = 0) -> str:
    """As wide as argparse's own lines, from `column` on, behind `first`."""
    width = max(40, shutil.get_terminal_size().columns - 2)
    return textwrap.fill(text, width, initial_indent=first.ljust(column), subsequent_indent=" " * column)
