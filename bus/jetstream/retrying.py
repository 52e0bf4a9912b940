"""Retries one operation on a server through lost connections and restarts, until its time is spent."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio

from bus.jetstream.api import RETRYABLE, ApiError
from bus.jetstream.calls import NoAnswer, NoResponder
from bus.jetstream.link import Link
from bus.retry import ASKED_AGAIN, Backoff, Budget
from schemas.errors import BusUnavailable

T = TypeVar("T")
_FIRST_S = 2.0
_SLOWEST_BYTES_PER_S = 2_000_000
_LOOK_S = 0.5


class Missing(BusUnavailable):
    """A stream or consumer does not exist: worth waiting for, because the administrator's step may still be under way."""


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """How long one operation of the bus may take."""

    attempt_s: float
    """Seconds for one small answer at the longest. Not shorter than a saturated server needs: what is sent again adds to its
    load."""
    total_s: float
    """Seconds for all attempts together: enough for a server to be restarted."""

    def waits(self) -> Backoff:
        """Seconds for the first small answer, for the second, ...

        What was on its way to a server that died is never answered, so the first is short; each later one is longer, since it
        may be that the server has much to do.
        """
        return Backoff(min(_FIRST_S, self.attempt_s), self.attempt_s)


def transfer_s(num_bytes: int) -> float:
    """Seconds that so many bytes may take beyond a small answer."""
    return num_bytes / _SLOWEST_BYTES_PER_S


async def retried(link: Link, what: str, limits: RetryLimits, attempt: Callable[[float], Awaitable[T]]) -> T:
    """Returns what `attempt` returns, however often the server had to be asked. It is given the seconds to wait for an answer.

    Raises:
        BusUnavailable: `limits` are spent; the last reason is in the message.
    """
    budget, waits, reason, num_tried = Budget(limits.total_s), limits.waits(), "no connection", 0
    while not budget.is_spent:
        began = anyio.current_time()
        if not await link.is_up_within(_LOOK_S):
            budget.spend(anyio.current_time() - began, meant_s=_LOOK_S)
            continue
        num_tried += 1
        wait_s, pause_s = waits.pause_s(num_tried), ASKED_AGAIN.pause_s(num_tried)
        try:
            return await attempt(wait_s)
        except (NoAnswer, NoResponder, Missing) as error:
            reason = str(error)
        except ApiError as error:
            if error.failure.err_code not in RETRYABLE:
                raise
            reason = str(error)
        await anyio.sleep(pause_s)
        budget.spend(anyio.current_time() - began, meant_s=wait_s + pause_s)
    raise BusUnavailable(f"{what} failed for {limits.total_s:.0f} s: {reason}")


async def known(link: Link, subject: str, limits: RetryLimits) -> None:
    """Returns once the server knows what is subscribed to; `subject` names it where it does not come to that.

    Raises:
        BusUnavailable: `limits` are spent.
    """
    await retried(link, f"listening to {subject}", limits, link.round_trip)
