"""Reads a stream in order, alone: no gap, nothing twice, through restarts of the server.

An ephemeral consumer without acknowledgements delivers from behind the last record seen. Its own sequence numbers show a lost
message at once; then, or when connection or consumer is lost, another one continues at the same place.
"""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import anyio
import structlog
from nats.aio.msg import Msg

from bus.companions import companions
from bus.handoff import Handoff
from bus.jetstream.api import NS
from bus.jetstream.link import Link
from bus.jetstream.pull import Puller, Source
from bus.jetstream.read import Stored
from bus.jetstream.streams import StreamAdmin
from bus.jetstream.work import AckReply
from bus.ports import Record
from schemas.errors import BusError, MessageCorrupt

_log = structlog.get_logger()
_BATCH = 256
_BATCH_BYTES = 16 * 1024 * 1024
_INACTIVE_S = 60.0
_CLOSING_S = 1.0


class Follower:
    """Delivers the stored records of one stream behind a sequence, then new ones as they come."""

    def __init__(
        self, link: Link, admin: StreamAdmin, stream: str, subject_filter: str, after_seq: int, since_s: float | None
    ) -> None:
        self._admin = admin
        self._stream = stream
        self._filter = subject_filter
        self._after_seq = after_seq
        self._since_s = since_s
        self._consumer_seq = 0
        self._consumer = ""
        self._ready = Handoff[Stored]()
        self._puller = Puller(link, open_source=self._open, wanted=self._wanted, take=self._take, max_bytes=_BATCH_BYTES)

    def __aiter__(self) -> AsyncIterator[Record]:
        return self

    async def __anext__(self) -> Record:
        while True:
            stored = await anext(self._ready)
            if self._ready.num_items == _BATCH // 2:
                self._puller.wake()  # there is room for the next batch
            try:
                return stored.record()
            except MessageCorrupt as error:
                _log.error("record_skipped", stream=stored.stream, seq=stored.seq, reason=str(error))

    async def run(self) -> None:
        try:
            await self._puller.run()
        except BusError as error:
            self._ready.fail(error)

    def _wanted(self) -> int:
        return _BATCH if self._ready.num_items <= _BATCH // 2 else 0

    async def _open(self) -> Source:
        newest = (await self._admin.stream(self._stream)).state.last_seq
        if newest < self._after_seq:
            _log.warning("stream_began_again", stream=self._stream, after_seq=self._after_seq, last_seq=newest)
            self._after_seq = 0
        self._consumer_seq = 0
        self._consumer = f"tail_{secrets.token_hex(8)}"
        await self._admin.create_consumer(
            self._stream, self._consumer, _consumer_config(self._filter, self._after_seq, self._since_s)
        )
        return Source(self._stream, self._consumer)

    async def close(self) -> None:
        """Spares the server the wait until it forgets the consumer by itself."""
        if self._consumer:
            await self._admin.remove_consumer(self._stream, self._consumer)

    def _take(self, message: Msg) -> bool:
        meta = AckReply.parse(message.reply)
        if f".{self._consumer}." not in message.reply:
            return True  # a straggler of an earlier consumer
        if meta.consumer_seq != self._consumer_seq + 1:
            _log.info("tail_gap", stream=self._stream, after_seq=self._after_seq)
            return False
        self._consumer_seq = meta.consumer_seq
        self._after_seq = meta.seq
        self._since_s = None
        self._ready.put(Stored(self._stream, message.subject, meta.seq, message.data, meta.time_s))
        if meta.consumer_seq % (_BATCH // 2) == 0:
            self._puller.wake()
        return True


def _consumer_config(subject_filter: str, after_seq: int, since_s: float | None) -> dict[str, Any]:
    start: dict[str, Any] = {"deliver_policy": "by_start_sequence", "opt_start_seq": after_seq + 1}
    if since_s is not None:
        at = datetime.fromtimestamp(since_s, UTC).isoformat()
        start = {"deliver_policy": "by_start_time", "opt_start_time": at}
    return {
        **start,
        "ack_policy": "none",
        "filter_subject": subject_filter,
        "mem_storage": True,
        "num_replicas": 1,
        "inactive_threshold": int(_INACTIVE_S * NS),
    }


@asynccontextmanager
async def tail(
    link: Link, admin: StreamAdmin, stream: str, subject_filter: str, *, after_seq: int, only_new: bool, since_s: float | None
) -> AsyncIterator[AsyncIterator[Record]]:
    """See `bus.ports.Bus.tail`."""
    info = await admin.stream(stream)
    follower = Follower(link, admin, stream, subject_filter, info.state.last_seq if only_new else after_seq, since_s)
    try:
        async with companions(follower.run):
            yield follower
    finally:
        with anyio.move_on_after(_CLOSING_S, shield=True):
            if link.is_up:
                await follower.close()
