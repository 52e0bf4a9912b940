"""Trying again: one operation is repeated through lost connections and restarts of the server until its time is up."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio

from bus.jetstream.api import RETRYABLE, ApiError
from bus.jetstream.calls import NoAnswer, NoResponder
from bus.jetstream.link import Link
from schemas.errors import BusUnavailable

T = TypeVar("T")
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5
_SLOWEST_BYTES_PER_S = 2_000_000


class Missing(BusUnavailable):
    """A stream or consumer does not exist: worth waiting for, because the administrator's step may still be under way."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one operation of the bus may take."""

    attempt_s: float
    """Seconds for one small answer. Not shorter than a saturated server needs: what is sent again adds to its load."""
    total_s: float
    """Seconds for all attempts together: enough for a server to be restarted."""

    def attempt_with_s(self, num_bytes: int) -> float:
        """Seconds for one exchange of so many bytes."""
        return self.attempt_s + num_bytes / _SLOWEST_BYTES_PER_S


async def persevere(link: Link, what: str, patience: Patience, attempt: Callable[[], Awaitable[T]]) -> T:
    """Returns what `attempt` returns, however often the server had to be asked.

    Raises:
        BusUnavailable: `patience` is at its end; the last reason is in the message.
    """
    pause_s = _FIRST_PAUSE_S
    reason = "no connection"
    with anyio.move_on_after(patience.total_s):
        while True:
            await link.wait_up()
            try:
                return await attempt()
            except (NoAnswer, NoResponder, Missing) as error:
                reason = str(error)
            except ApiError as error:
                if error.failure.err_code not in RETRYABLE:
                    raise
                reason = str(error)
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    raise BusUnavailable(f"{what} failed for {patience.total_s:.0f} s: {reason}")
