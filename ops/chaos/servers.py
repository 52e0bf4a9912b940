"""The servers of a drill, and which faults can reach them."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import psutil

from ops.supervisor import Supervisor


class Servers(Protocol):
    """Servers that are started again whenever they end."""

    @property
    def names(self) -> Sequence[str]: ...

    def pid(self, name: str) -> int | None:
        """Process id of a nats-server; None while it is not up."""
        ...

    async def leader(self) -> str | None:
        """Who leads a stream of the run now; None when nobody does, or there is only one server."""
        ...


class EmbeddedServer:
    """The run's own server, below its role."""

    def __init__(self, supervisor: Supervisor, role_name: str) -> None:
        self._supervisor = supervisor
        self._role_name = role_name
        self.names = (role_name,)

    def pid(self, name: str) -> int | None:
        role = self._supervisor.pid(self._role_name)
        if role is not None:
            with suppress(psutil.Error):
                for child in psutil.Process(role).children():
                    if child.name() == "nats-server":
                        return child.pid
        return None

    async def leader(self) -> str | None:
        return None
