"""A network for tests that never leaves loopback: names by a list, addresses of documentation in place of public ones."""

import asyncio
from collections.abc import Callable, Mapping
from ipaddress import ip_address

from browser_workers.network.addresses import Address
from browser_workers.network.outside import Network
from browser_workers.network.pipe import End

PUBLIC_NETWORKS = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
"""As `private_hosts` has them: what is documentation to the rules is then as open as any public address."""


class StagedNetwork:
    """Each look-up of a name gets the next of its answers; the last for ever."""

    def __init__(
        self, names: Mapping[str, tuple[tuple[str, ...], ...]], *, served: Mapping[str, int], elsewhere: int = 0
    ) -> None:
        self.looked_up: list[str] = []
        self.connected: list[tuple[str, int]] = []
        """Every address and port that anybody tried."""
        self._names = {name: list(answers) for name, answers in names.items()}
        self._served = served
        """By address: the port of loopback that stands for it, whatever port is asked for."""
        self._elsewhere = elsewhere
        """The same for all other addresses; 0: they are unreachable."""

    @property
    def network(self) -> Network:
        return Network(self._look_up, self._connect)

    def _look_up(self, host: str) -> tuple[Address, ...]:
        self.looked_up.append(host)
        if host not in self._names:
            raise OSError("no such name")
        answers = self._names[host]
        return tuple(map(ip_address, answers.pop(0) if len(answers) > 1 else answers[0]))

    async def _connect(self, end: Callable[[], End], address: Address, port: int) -> End:
        self.connected.append((str(address), port))
        placed = self._served.get(str(address), self._elsewhere)
        if not placed:
            raise OSError("nothing is there")
        return (await asyncio.get_running_loop().create_connection(end, "127.0.0.1", placed))[1]
