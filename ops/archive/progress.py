"""One line on the terminal that says how far a command is; nothing when nobody watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.text import Text

from ops.console.terminal import Console


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Gives the function that changes the line; safe to call from any thread."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("") as status:
        yield lambda text: status.update(Text(text))
