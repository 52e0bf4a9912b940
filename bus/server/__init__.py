"""Servers: the embedded one of a run, its keys, its configuration text, and clusters of several."""

from bus.server.embedded import ServerProcess, address_of, nats_server, server_process
from bus.server.lock import is_served
from bus.server.reload import reload_permissions

__all__ = ["ServerProcess", "address_of", "is_served", "nats_server", "reload_permissions", "server_process"]
