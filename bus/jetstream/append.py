"""Writes records so that repeating a write is safe: the chain's compare-and-set, or a message id where there is none."""

import secrets
from dataclasses import dataclass
from functools import partial

import msgspec
from nats.aio.msg import Msg

from bus.jetstream.api import ApiError, PubAck
from bus.jetstream.calls import NoResponder
from bus.jetstream.link import Link
from bus.jetstream.read import Reader
from bus.jetstream.retrying import RetryLimits, retried, transfer_s
from bus.jetstream.streams import Streams
from bus.ports import Expect
from bus.trying import look
from schemas.errors import ChainConflict, MessageTooLarge, StreamFull

WRONG_LAST_SEQUENCE = frozenset({10071, 10164})
"""The compare-and-set does not hold: on a single server, and on a cluster."""
NO_ROOM = frozenset({10077, 10002, 10023, 10028, 10047})
"""A limit of the stream (10077: messages, bytes, or messages of the subject), of the account, or of the server's storage or
memory is reached. (A disk that is full below the server's own limit is no answer at all: the server stops serving the stream.)
"""
_TOO_LARGE = 10054
_acks = msgspec.json.Decoder(PubAck)


@dataclass(slots=True)
class Appender:
    """Appends records over one connection.

    An answer that is lost leaves it open whether the record is stored. Nothing remembers that: whenever a compare-and-set is
    refused, it is looked whether what stands there is this very record. So it does not matter when it was sent before, in
    which call, or over which connection. What has no condition carries an id, by which the server knows it again.
    """

    link: Link
    reader: Reader
    streams: Streams
    limits: RetryLimits

    async def append_bytes(
        self, stream: str, subject: str, data: bytes, expect: Expect | None, *, message_id: str | None = None
    ) -> int:
        """See `bus.ports.Bus.append`. `message_id`: what a record without `expect` is known by when it is sent again."""
        headers = _headers(expect, message_id)

        async def attempt(wait_s: float) -> int:
            try:
                reply = await self.link.request(subject, data, headers, timeout_s=wait_s + transfer_s(len(data)))
            except NoResponder:
                await self.streams.explain_silence(stream)
                raise
            try:
                return _sequence(reply, subject)
            except ChainConflict:
                if (seq := await self._stored_at(stream, subject, data)) is not None:
                    return seq
                raise

        return await retried(self.link, f"writing to {subject}", self.limits, attempt)

    async def _stored_at(self, stream: str, subject: str, data: bytes) -> int | None:
        """The sequence of this very record, if it is the newest on its subject."""
        newest = await look(partial(self.reader.newest_on, stream, subject))
        return newest.seq if newest is not None and newest.data == data else None


def _headers(expect: Expect | None, message_id: str | None) -> dict[str, str]:
    if expect is None:
        return {"Nats-Msg-Id": message_id or secrets.token_hex(12)}
    return {
        "Nats-Expected-Last-Subject-Sequence": str(expect.last_seq),
        "Nats-Expected-Last-Subject-Sequence-Subject": expect.subject_filter,
    }


def _sequence(reply: Msg, subject: str) -> int:
    ack = _acks.decode(reply.data)
    if ack.error is None:
        return ack.seq
    code, reason = ack.error.err_code, ack.error.description
    if code in WRONG_LAST_SEQUENCE:
        raise ChainConflict(f"{subject}: {reason}")
    if code in NO_ROOM:
        raise StreamFull(f"{subject}: {reason}")
    if code == _TOO_LARGE:
        raise MessageTooLarge(f"{subject}: {reason}")
    raise ApiError(subject, ack.error)
