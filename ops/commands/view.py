"""Serves the viewer of finished episodes, step by step, until Ctrl-C."""

import argparse
from pathlib import Path

from ops.commands.arguments import add_source
from ops.commands.execution import interruptible
from ops.commands.page_arguments import add_entrance, add_page, entrance_of

EXAMPLE = """\
millrace view runs/mine --open
millrace view runs/mine/archive --port 9000
millrace view runs/mine --labels labels.jsonl"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    labels_help = "a file of labels, as calibrate --template writes it, to be filled in here"
    parser.add_argument("--labels", type=Path, metavar="FILE", help=labels_help)
    add_page(parser)
    add_entrance(parser)


@interruptible
async def run(options: argparse.Namespace) -> int:
    """Raises `ConfigurationError`: there is neither a run nor an archive, the labels cannot be read, or the port is taken."""
    entrance = entrance_of(options, options.port)
    from ops.web.viewer_site import serve_viewer

    labels = options.labels.resolve() if options.labels else None
    return await serve_viewer(options.source.resolve(), entrance, labels)
