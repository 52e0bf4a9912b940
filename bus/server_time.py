"""The server's time of day, which alone records are stored and aged by: this machine's clock may say anything, or jump."""

import time


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
