"""Serves a site of the suites on loopback, for one's own browser."""

import argparse

from ops.commands.arguments import port
from ops.commands.execution import interruptible

EXAMPLE = "millrace site shop --port 8000"
_PORT = 8000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("site", choices=("shop",), metavar="SITE", help="shop")
    parser.add_argument("--port", type=port, default=_PORT, metavar="PORT", help="on 127.0.0.1 (default: %(default)s)")


@interruptible
async def run(options: argparse.Namespace) -> int:
    from browser_workers.suites.shop.site import ShopSite
    from ops.web.site_server import serve

    return await serve(ShopSite(), options.port)
