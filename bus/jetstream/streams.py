"""Asks for streams and consumers, and takes a worker's own records back. Nothing here creates a stream or consumer, or
changes its configuration."""

from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from bus.jetstream.api import (
    CONSUMER_NOT_FOUND,
    STREAM_NOT_FOUND,
    AccountInfo,
    ApiError,
    ConsumerInfo,
    Purged,
    Response,
    StreamInfo,
    ask,
)
from bus.jetstream.link import Link
from bus.jetstream.retrying import Missing, RetryLimits, retried

R = TypeVar("R", bound=Response)
_HOW_TO_CREATE = (
    "does not exist on this server: let an administrator create the run's streams (`millrace streams`; the server role does "
    "it by itself), or correct bus_config.run and bus_config.url"
)
_EXPLAINED_S = 0.5
_log = structlog.get_logger()


@dataclass(slots=True)
class Streams:
    """Asks over one connection. What is missing is waited for: the administrator's step may still be under way."""

    link: Link
    limits: RetryLimits

    async def info(self, stream: str, body: dict[str, Any] | None = None) -> StreamInfo:
        """Raises `BusUnavailable` when the stream does not exist, and does not come to be."""

        async def attempt(wait_s: float) -> StreamInfo:
            return await self._info(stream, body, wait_s)

        return await retried(self.link, f"asking for stream {stream}", self.limits, attempt)

    async def account(self) -> AccountInfo:
        async def attempt(wait_s: float) -> AccountInfo:
            return await self._ask("INFO", None, AccountInfo, wait_s)

        return await retried(self.link, "asking for the account", self.limits, attempt)

    async def purge(self, stream: str, subject_filter: str, up_to: int) -> int:
        """Removes every record under a filter, or those up to a sequence; returns how many the last attempt found."""
        body = {"filter": subject_filter} | ({"seq": up_to + 1} if up_to else {})

        async def attempt(wait_s: float) -> int:
            return (await self._ask(f"STREAM.PURGE.{stream}", body, Purged, wait_s)).purged

        return await retried(self.link, f"purging {subject_filter} of {stream}", self.limits, attempt)

    async def explain_silence(self, stream: str) -> None:
        """Nobody answers for a stream: raises `Missing` when there is none, otherwise returns to try again.

        While a leader is elected this question has no answer either, and is not waited for: the next try may have one.
        """
        await self._info(stream, None, _EXPLAINED_S)

    async def consumer(self, stream: str, name: str) -> ConsumerInfo | None:
        async def attempt(wait_s: float) -> ConsumerInfo | None:
            return await self._consumer(stream, name, wait_s)

        return await retried(self.link, f"asking for consumer {name} of {stream}", self.limits, attempt)

    async def await_consumer(self, stream: str, name: str) -> None:
        """Raises `BusUnavailable` when the consumer does not exist, and does not come to be."""
        awaited = False

        async def attempt(wait_s: float) -> None:
            nonlocal awaited
            if await self._consumer(stream, name, wait_s) is not None:
                return
            if not awaited:
                awaited = True
                _log.info("queue_awaited", stream=stream, queue=name)
            raise Missing(f"the queue {name} of {stream} {_HOW_TO_CREATE}")

        await retried(self.link, f"joining queue {name} of {stream}", self.limits, attempt)

    async def _info(self, stream: str, body: dict[str, Any] | None, wait_s: float) -> StreamInfo:
        try:
            return await self._ask(f"STREAM.INFO.{stream}", body, StreamInfo, wait_s)
        except ApiError as error:
            if error.failure.err_code == STREAM_NOT_FOUND:
                raise Missing(f"stream {stream} {_HOW_TO_CREATE}") from error
            raise

    async def _consumer(self, stream: str, name: str, wait_s: float) -> ConsumerInfo | None:
        try:
            return await self._ask(f"CONSUMER.INFO.{stream}.{name}", None, ConsumerInfo, wait_s)
        except ApiError as error:
            if error.failure.err_code in (CONSUMER_NOT_FOUND, STREAM_NOT_FOUND):
                return None
            raise

    async def _ask(self, verb: str, body: dict[str, Any] | None, kind: type[R], wait_s: float) -> R:
        return await ask(self.link, verb, body, kind, timeout_s=wait_s)
