"""What a worker's sessions cost, for its heartbeats."""

from collections.abc import MutableMapping

from browser_workers.providers.provider import Bill

_MB = 1e6


class Figures:
    """Of providers that sell sessions: others never write any."""

    def __init__(self, figures: MutableMapping[str, float]) -> None:
        self._figures = figures

    def add(self, name: str, amount: float) -> None:
        self._figures[name] = self._figures.get(name, 0.0) + amount

    def opened(self) -> None:
        self.add("sessions", 1)
        self.add("sessions_opened", 1)

    def ended(self, seconds: float, *, was_lost: bool) -> None:
        self.add("sessions", -1)
        self.add("session_s", seconds)
        self.add("sessions_lost", was_lost)

    def bill(self, bill: Bill) -> None:
        if bill.proxy_bytes:
            self.add("session_proxy_mb", bill.proxy_bytes / _MB)
