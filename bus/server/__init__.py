"""Servers: the embedded one of a run, its keys, its configuration text, and clusters of several."""

from bus.server.embedded import ServerProcess, address_of, is_served, nats_server, server_process

__all__ = ["ServerProcess", "address_of", "is_served", "nats_server", "server_process"]
