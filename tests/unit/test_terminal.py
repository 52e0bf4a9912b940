"""What commands print: words of others are words, never markup or a terminal's orders."""

import ast
import io
from datetime import UTC, datetime
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

import ops
from ops.commands.blocklist import blocklist_table
from ops.commands.dead_letters import letters_table
from ops.console.terminal import Console
from ops.run.dead_letters import Letter
from schemas.messages import SiteBlock

_OPS = Path(next(iter(ops.__path__)))
HOSTILE = "[/] page \x1b[2J\x9b1m\u202esays [red]so"


def printed(what: RenderableType, *, colours: bool = False) -> str:
    console = Console(
        file=io.StringIO(),
        width=200,
        force_terminal=colours,
        color_system="standard" if colours else None,
        no_color=not colours,
    )
    with console.capture() as capture:
        console.print(what)
    return capture.get()


def test_no_command_prints_by_another_console() -> None:
    used = []
    for path in _OPS.rglob("*.py"):
        tree = ast.parse(path.read_text())
        riches = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "rich.console"
            for alias in node.names
        }
        calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        if "Console" in riches & calls:
            used.append(path)
    assert used == [], "write `from ops.console.terminal import Console`"


def test_only_our_colours_are_obeyed() -> None:
    assert printed(Text(HOSTILE, "red"), colours=True) == "\x1b[31m[/] page \ufffd[2J\ufffd1msays [red]so\x1b[0m\n"


def test_a_reason_in_square_brackets_is_shown() -> None:
    letter = Letter(number=1, time=datetime.now(UTC), stream="s", seq=1, consumer="c", reason=HOSTILE, worker=HOSTILE)
    assert printed(letters_table([letter])).count("[/] page \ufffd[2J\ufffd1msays [red]so") == 2


def test_a_blocked_site_s_reason_is_shown() -> None:
    entry = SiteBlock(site="shop.example", until=100.0, reason=HOSTILE)
    assert "[/] page \ufffd[2J\ufffd1msays [red]so" in printed(blocklist_table([entry], 0.0))


def test_what_is_put_into_a_line_is_no_markup() -> None:
    """It may hold brackets: a folder's name, an error, a page's words."""
    obeyed = []
    for path in _OPS.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr == "print"
                and any(isinstance(argument, ast.JoinedStr) for argument in call.args)
                and not any(each.arg == "markup" for each in call.keywords)
            ):
                obeyed.append(f"{path.relative_to(_OPS)}:{call.lineno}")
    assert obeyed == [], "write markup=False, and the line's colour as style="
