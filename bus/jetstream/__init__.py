"""The bus on a NATS server with JetStream."""

from bus.jetstream.administration import Applied
from bus.jetstream.bus import JetStreamBus, connect, create_topology

__all__ = ["Applied", "JetStreamBus", "connect", "create_topology"]
