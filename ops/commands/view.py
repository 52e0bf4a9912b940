"""Serves the viewer of finished episodes, step by step, until Ctrl-C."""

import argparse

from ops.commands.arguments import add_source
from ops.commands.execution import interruptible
from ops.commands.page_arguments import add_entrance, add_page, entrance_of

EXAMPLE = """\
millrace view runs/mine --open
millrace view runs/mine/archive --port 9000"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_page(parser)
    add_entrance(parser)


@interruptible
async def run(options: argparse.Namespace) -> int:
    """Raises `ConfigurationError`: there is neither a run nor an archive, or the port is taken."""
    entrance = entrance_of(options, options.port)
    from ops.web.viewer_site import serve_viewer

    return await serve_viewer(options.source.resolve(), entrance)
