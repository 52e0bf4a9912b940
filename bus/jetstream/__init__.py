"""The bus on a NATS server with JetStream."""

from bus.jetstream.bus import JetStreamBus, connect, create_topology

__all__ = ["JetStreamBus", "connect", "create_topology"]
