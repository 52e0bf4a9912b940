"""Reads stored records by direct get: one by sequence, the newest under a filter, or the newest of every subject."""

from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from nats.aio.msg import Msg

from bus.codec import decode
from bus.jetstream.link import Link, NoResponder, status_of
from bus.jetstream.patience import Patience, persevere
from bus.jetstream.streams import StreamAdmin
from bus.ports import Record
from schemas.errors import BusError

T = TypeVar("T")
_BATCH_BYTES = 16 * 1024 * 1024
_BATCH_RECORDS = 256
_NOT_FOUND = "404"
_TOO_MANY = "413"


@dataclass(frozen=True, slots=True)
class Stored:
    """One record as the server keeps it."""

    stream: str
    subject: str
    seq: int
    data: bytes
    time_s: float = 0.0

    def record(self) -> Record:
        """Raises `MessageCorrupt`."""
        return Record(self.stream, self.subject, self.seq, decode(self.data), self.time_s, self.data)


class TooManySubjects(BusError):
    """More subjects than one batched read covers (1,024)."""


@dataclass(slots=True)
class Reader:
    """Reads over one connection; every read is repeated through a restart of the server."""

    link: Link
    admin: StreamAdmin
    patience: Patience

    async def by_seq(self, stream: str, seq: int) -> Stored | None:
        return await self._one(stream, {"seq": seq})

    async def newest(self, stream: str, subject_filter: str) -> Stored | None:
        return await self._one(stream, {"last_by_subj": subject_filter})

    async def page(self, stream: str, subject_filter: str, *, after_seq: int = 0) -> list[Stored]:
        body = {"seq": after_seq + 1, "next_by_subj": subject_filter, "batch": _BATCH_RECORDS, "max_bytes": _BATCH_BYTES}
        *page, _ = await self._batch(stream, body)
        return [_stored(reply) for reply in page]

    async def newest_of_each(self, stream: str, subject_filter: str) -> list[Stored]:
        """Newest record of every subject, oldest first.

        Raises:
            TooManySubjects: the filter covers more than 1,024 subjects; read them through a consumer instead.
        """
        found: list[Stored] = []
        bound: dict[str, int] = {}
        while True:
            body = {"multi_last": [subject_filter], "batch": _BATCH_RECORDS, "max_bytes": _BATCH_BYTES, **bound}
            *page, end = await self._batch(stream, body)
            if status_of(end) == _NOT_FOUND:
                return found
            if status_of(end) == _TOO_MANY:
                raise TooManySubjects(f"more than 1,024 subjects under {subject_filter}")
            found += map(_stored, page)
            closing = end.headers or {}
            if closing.get("Nats-Num-Pending", "0") == "0" or not page:
                return found
            bound = {"seq": found[-1].seq + 1, "up_to_seq": int(closing["Nats-UpTo-Sequence"])}

    async def subjects(self, stream: str, subject_filter: str) -> dict[str, int]:
        found: dict[str, int] = {}
        while True:
            info = await self.admin.stream(stream, {"subjects_filter": subject_filter, "offset": len(found)})
            page = info.state.subjects or {}
            found |= page
            if not page or len(found) >= info.total:
                return found

    async def last_seq(self, stream: str) -> int:
        return (await self.admin.stream(stream)).state.last_seq

    async def _one(self, stream: str, body: dict[str, Any]) -> Stored | None:
        payload = msgspec.json.encode(body)

        async def attempt() -> Stored | None:
            request = self.link.request(_get(stream), payload, timeout_s=self.patience.attempt_s)
            reply = await self._answered_for(stream, request)
            return None if status_of(reply) == _NOT_FOUND else _stored(reply)

        return await persevere(self.link, f"reading {stream}", self.patience, attempt)

    async def _batch(self, stream: str, body: dict[str, Any]) -> list[Msg]:
        """The replies to one batched direct get, the closing status last."""
        payload = msgspec.json.encode(body)

        async def attempt() -> list[Msg]:
            return await self._answered_for(
                stream, self.link.request_many(_get(stream), payload, timeout_s=self.patience.attempt_s)
            )

        return await persevere(self.link, f"reading {stream}", self.patience, attempt)

    async def _answered_for(self, stream: str, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except NoResponder:
            await self.admin.explain_silence(stream)
            raise


def _get(stream: str) -> str:
    return f"$JS.API.DIRECT.GET.{stream}"


def _stored(reply: Msg) -> Stored:
    headers = reply.headers or {}
    return Stored(
        headers["Nats-Stream"],
        headers["Nats-Subject"],
        int(headers["Nats-Sequence"]),
        reply.data,
        datetime.fromisoformat(headers["Nats-Time-Stamp"]).timestamp(),
    )
