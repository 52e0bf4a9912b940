"""Machines on one machine: network namespaces on a bridge, each with its own address, that can be cut off. Needs root."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_LIMIT_S = 20.0


@dataclass(frozen=True)
class Network:
    """Had from `network`. Nodes are numbered from 1."""

    prefix: str
    num_nodes: int

    def address(self, node: int) -> str:
        return f"10.77.{os.getpid() % 250}.{node}"

    def namespace(self, node: int) -> str:
        return f"{self.prefix}-{node}"

    def cut(self, node: int) -> None:
        """From now on nothing reaches the node or leaves it."""
        _ip("link", "set", self._cable(node), "down")

    def mend(self, node: int) -> None:
        _ip("link", "set", self._cable(node), "up")

    def _cable(self, node: int) -> str:
        return f"{self.prefix}v{node}"


@contextmanager
def network(num_nodes: int) -> Iterator[Network]:
    """Namespaces and bridge stand while the context is open; whatever runs in them has to be ended before."""
    made = Network(f"mr{os.getpid() % 100_000}", num_nodes)
    bridge = f"{made.prefix}b"
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("address", "add", f"{made.address(254)}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for node in range(1, num_nodes + 1):
            name, cable = made.namespace(node), made._cable(node)
            _ip("netns", "add", name)
            _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", cable, "master", bridge, "up")
            _ip("-n", name, "address", "add", f"{made.address(node)}/24", "dev", "eth0")
            for interface in ("lo", "eth0"):
                _ip("-n", name, "link", "set", interface, "up")
        yield made
    finally:
        for node in range(1, num_nodes + 1):
            _ip("netns", "delete", made.namespace(node), check=False)
            _ip("link", "delete", made._cable(node), check=False)
        _ip("link", "delete", bridge, check=False)


def _ip(*arguments: str, check: bool = True) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    if check and done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()} (this needs root)")
