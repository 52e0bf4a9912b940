"""Arguments of commands that serve a page: where it listens, with which certificate and token."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ops.commands.arguments import port
from schemas.extras import require_extra

if TYPE_CHECKING:
    from ops.web.entrance import Entrance

_PORT = 8400


def add_page(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--port", type=port, metavar="PORT", help=f"to listen on (default: the first free one from {_PORT})")
    parser.add_argument("--open", action="store_true", help="open the page in this machine's browser")


def add_entrance(parser: argparse.ArgumentParser) -> None:
    """What `entrance_of` reads besides the port."""
    far = parser.add_argument_group("from other machines", "all of these, and a token")
    far.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="to listen on (default: %(default)s)")
    far.add_argument("--tls-cert", type=Path, metavar="FILE", help="certificate of this machine, PEM")
    far.add_argument("--tls-key", type=Path, metavar="FILE", help="its key, PEM")
    far.add_argument("--token-file", type=Path, metavar="FILE", help="mode 600 (default: $MILLRACE_WEB_TOKEN)")
    far.add_argument(
        "--name", action="append", default=[], metavar="NAME", help="by which this machine is reached; may be repeated"
    )


def entrance_of(options: argparse.Namespace, at: int | None) -> "Entrance":
    """`at`: the port that was asked for; None: the first free one. Raises `ConfigurationError`."""
    require_extra("uvicorn", "monitor")
    from ops.web.entrance import entrance
    from ops.web.serving import Listening

    listening = Listening(
        host=options.host,
        port=at or _PORT,
        exact=at is not None,
        certificate=options.tls_cert,
        key=options.tls_key,
        name=next(iter(options.name), ""),
    )
    return entrance(listening, token_file=options.token_file, names=options.name, opens_browser=options.open)
