"""Opens an application's entrance as it was typed: the address to listen on, who may come in, and the browser to open.

Invariant: nothing listens beyond loopback without TLS and a token.
"""

import webbrowser
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
from starlette.types import ASGIApp

from ops.web.access import Access, host_names, read_token, require_safe
from ops.web.serving import Listening, require_usable, serve
from schemas.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class Entrance:
    """Made by `entrance`, which refuses what anybody could use."""

    listening: Listening
    access: Access
    opens_browser: bool = False

    async def keep(self, app: ASGIApp, ending: Callable[[], None]) -> None:
        """Serves until it is cancelled, and says where. Raises `ConfigurationError`: see `serve`."""
        async with anyio.create_task_group() as group:

            def ready(url: str) -> None:
                print(f"{url}  (Ctrl-C ends it)", flush=True)
                if self.opens_browser:
                    group.start_soon(_open, url)

            await serve(app, self.listening, ready=ready, ending=ending)


def entrance(
    listening: Listening, *, token_file: Path | None = None, names: Collection[str] = (), opens_browser: bool = False
) -> Entrance:
    """`names`: further ones that this machine is reached by.

    Raises:
        ConfigurationError: others could come in, or the token, the certificate or the port cannot be used.
    """
    if (listening.certificate is None) != (listening.key is None):
        raise ConfigurationError("--tls-cert and --tls-key belong together: give both or none")
    token, tls = read_token(token_file), listening.certificate is not None
    require_safe(listening.host, tls=tls, token=token)
    require_usable(listening)
    access = Access(hosts=host_names(listening.host, names), token=token, tls=tls)
    return Entrance(listening=listening, access=access, opens_browser=opens_browser)


async def _open(url: str) -> None:
    await anyio.to_thread.run_sync(webbrowser.open, url)
