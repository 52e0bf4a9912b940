"""The server's time of day, which alone records are stored and aged by: this machine's clock may say anything, or jump."""

import time

from bus.ports import Bus


async def server_now(bus: Bus, stream: str) -> float:
    """Unix seconds by the clock that dates a stream's records; by this machine's where the server does not say."""
    return (await bus.stream_state(stream)).now_s or time.time()


async def age_s(bus: Bus, stream: str, seq: int) -> float:
    """Seconds since the server stored a record; 0 for one that is gone."""
    stored = await bus.get_bytes(stream, seq)
    return 0.0 if stored is None else max(0.0, await server_now(bus, stream) - stored.time_s)


class ServerClock:
    """Unix seconds; by this machine's clock until the server has said what time it is."""

    def __init__(self) -> None:
        self._ahead_s: float | None = None
        """Of this machine's monotonic clock."""

    def heard(self, now_s: float) -> None:
        """The server has said just now what time it is; 0: it did not say."""
        if now_s:
            self._ahead_s = now_s - time.monotonic()

    def __call__(self) -> float:
        return time.time() if self._ahead_s is None else time.monotonic() + self._ahead_s
