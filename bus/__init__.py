"""Everything that touches the message bus; the only package that knows NATS."""
