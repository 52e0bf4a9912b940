"""Reads stored records by direct get: one by sequence, the newest under a filter or of every subject, or page after page."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from nats.aio.msg import Msg

from bus.jetstream.api import MESSAGE_NOT_FOUND, ApiError, Got, ask
from bus.jetstream.calls import NoAnswer, NoResponder, status_of
from bus.jetstream.link import Link
from bus.jetstream.retrying import RetryLimits, retried, transfer_s
from bus.jetstream.streams import Streams
from bus.ports import StoredBytes

T = TypeVar("T")
_BATCH_BYTES = 16 * 1024 * 1024
_BATCH_RECORDS = 256
_NOT_FOUND = "404"


@dataclass(slots=True)
class Reader:
    """Reads over one connection; every read is repeated through a restart of the server."""

    link: Link
    streams: Streams
    limits: RetryLimits

    async def by_seq(self, stream: str, seq: int) -> StoredBytes | None:
        return await self._one(stream, {"seq": seq})

    async def newest(self, stream: str, subject_filter: str) -> StoredBytes | None:
        return await self._one(stream, {"last_by_subj": subject_filter})

    async def newest_on(self, stream: str, subject: str) -> StoredBytes | None:
        """The newest record on one subject, which stands in the request: a writer is permitted no more than his own."""
        return await self._one(stream, None, f".{subject}")

    async def newest_at_leader(self, stream: str, subject_filter: str) -> StoredBytes | None:
        """The newest record as only the stream's leader answers for it; while there is none, it is waited for."""

        async def attempt(wait_s: float) -> StoredBytes | None:
            try:
                body = {"last_by_subj": subject_filter}
                got = (await ask(self.link, f"STREAM.MSG.GET.{stream}", body, Got, timeout_s=wait_s)).message
            except ApiError as error:
                if error.failure.err_code != MESSAGE_NOT_FOUND:
                    raise
                return None
            return StoredBytes(stream, got.subject, got.seq, unix_seconds(got.time), got.data) if got is not None else None

        return await retried(self.link, f"asking the leader of {stream}", self.limits, attempt)

    async def page(
        self, stream: str, subject_filter: str, *, after_seq: int = 0, since_s: float | None = None
    ) -> list[StoredBytes]:
        """The next records behind `after_seq`, or stored at `since_s` or later; none when there are none yet."""
        start = {"seq": after_seq + 1} if since_s is None else {"start_time": _rfc3339(since_s)}
        body = {**start, "next_by_subj": subject_filter, "batch": _BATCH_RECORDS, "max_bytes": _BATCH_BYTES}
        *page, _ = await self._batch(stream, body)
        return [_stored(reply) for reply in page]

    async def newest_of_each(self, stream: str, subject_filter: str) -> list[StoredBytes]:
        """Newest record of every subject that has one when this begins, oldest first."""
        newest: dict[str, StoredBytes] = {}
        bound: dict[str, int] = {}
        while True:
            body = {"multi_last": [subject_filter], "batch": _BATCH_RECORDS, "max_bytes": _BATCH_BYTES, **bound}
            *replies, end = await self._batch(stream, body)
            page, closing = [_stored(reply) for reply in replies], end.headers or {}
            newest |= {stored.subject: stored for stored in page}
            num_pending = int(closing.get("Nats-Num-Pending", "-1"))
            if num_pending == 0 and not bound:
                return page
            if num_pending <= 0 or not page:
                return await self._read_on(stream, subject_filter, newest)
            bound = {"seq": page[-1].seq + 1, "up_to_seq": int(closing["Nats-UpTo-Sequence"])}

    async def _read_on(self, stream: str, subject_filter: str, newest: dict[str, StoredBytes]) -> list[StoredBytes]:
        """Merges in every record behind those that were found.

        Among them is whatever they lack: what was replaced between two answers; what stands behind a record that aged out
        under the server's hands, where it ends its answer; all of it, where there are more than the 1,024 subjects it covers.
        """
        after_seq = max((stored.seq for stored in newest.values()), default=0)
        while page := await self.page(stream, subject_filter, after_seq=after_seq):
            newest |= {stored.subject: stored for stored in page}
            after_seq = page[-1].seq
        return sorted(newest.values(), key=lambda stored: stored.seq)

    async def subjects(self, stream: str, subject_filter: str) -> dict[str, int]:
        found: dict[str, int] = {}
        while True:
            info = await self.streams.info(stream, {"subjects_filter": subject_filter, "offset": len(found)})
            page = info.state.subjects or {}
            found |= page
            if not page or len(found) >= info.total:
                return found

    async def last_seq(self, stream: str) -> int:
        return (await self.streams.info(stream)).state.last_seq

    async def _one(self, stream: str, body: dict[str, Any] | None, suffix: str = "") -> StoredBytes | None:
        payload = b"" if body is None else msgspec.json.encode(body)

        async def attempt(wait_s: float) -> StoredBytes | None:
            request = self.link.request(_get(stream) + suffix, payload, timeout_s=wait_s)
            reply = await self._answered_for(stream, request)
            return None if status_of(reply) == _NOT_FOUND else _stored(reply)

        return await retried(self.link, f"reading {stream}", self.limits, attempt)

    async def _batch(self, stream: str, body: dict[str, Any]) -> list[Msg]:
        """The replies to one batched direct get, the closing status last."""
        payload = msgspec.json.encode(body)

        async def attempt(wait_s: float) -> list[Msg]:
            answer = self.link.request_many(_get(stream), payload, timeout_s=wait_s + transfer_s(_BATCH_BYTES))
            replies = await self._answered_for(stream, answer)
            _check_complete(stream, replies)
            return replies

        return await retried(self.link, f"reading {stream}", self.limits, attempt)

    async def _answered_for(self, stream: str, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except NoResponder:
            await self.streams.explain_silence(stream)
            raise


def _check_complete(stream: str, replies: Sequence[Msg]) -> None:
    """Every reply names the record before it: one that a slow client dropped is noticed, and the page is read again."""
    last_seq: str | None = None
    for reply in replies:
        headers = reply.headers or {}
        before = headers.get("Nats-Last-Sequence")
        if last_seq is not None and before is not None and before != last_seq:
            raise NoAnswer(f"a part of the answer for {stream} was lost")
        last_seq = headers.get("Nats-Sequence")


def _get(stream: str) -> str:
    return f"$JS.API.DIRECT.GET.{stream}"


def _rfc3339(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat().replace("+00:00", "Z")


def unix_seconds(rfc3339: str) -> float:
    """Of the server's time stamps; 0 for none. Below a microsecond nothing is kept."""
    return datetime.fromisoformat(rfc3339).timestamp() if rfc3339 else 0.0


def _stored(reply: Msg) -> StoredBytes:
    headers = reply.headers or {}
    time_s = unix_seconds(headers["Nats-Time-Stamp"])
    return StoredBytes(headers["Nats-Stream"], headers["Nats-Subject"], int(headers["Nats-Sequence"]), time_s, reply.data)
