"""Reads the newest record of every subject under a filter, however many there are, through a consumer made for it."""

import secrets
from dataclasses import dataclass, field

import anyio
from nats.aio.msg import Msg

from bus.companions import companions
from bus.jetstream.api import NS
from bus.jetstream.link import Link
from bus.jetstream.pull import Puller, Source
from bus.jetstream.read import Stored
from bus.jetstream.streams import StreamAdmin
from bus.jetstream.work import AckReply
from schemas.errors import BusUnavailable

_BATCH = 512
_BATCH_BYTES = 16 * 1024 * 1024
_INACTIVE_S = 30.0


@dataclass
class Snapshot:
    """One reading; it starts again from nothing when the consumer is lost on the way."""

    link: Link
    admin: StreamAdmin
    stream: str
    subject_filter: str
    found: list[Stored] = field(default_factory=list)
    _consumer: str = ""
    _complete: bool = False
    _progress: anyio.Event = field(default_factory=anyio.Event)

    async def read(self, *, stall_s: float) -> list[Stored]:
        """Records oldest first. Raises `BusUnavailable` when nothing comes for `stall_s` seconds."""
        puller = Puller(
            self.link,
            open_source=self._open,
            wanted=lambda: 0 if self._complete else _BATCH,
            take=self._take,
            max_bytes=_BATCH_BYTES,
        )
        async with companions(puller.run):
            await self._until_complete(stall_s)
        await self.admin.remove_consumer(self.stream, self._consumer)
        return self.found

    async def _until_complete(self, stall_s: float) -> None:
        while not self._complete:
            self._progress = anyio.Event()
            with anyio.move_on_after(stall_s) as scope:
                await self._progress.wait()
            if scope.cancelled_caught:
                raise BusUnavailable(f"reading {self.stream} failed: nothing came for {stall_s:.0f} s")

    async def _open(self) -> Source:
        self.found.clear()
        self._consumer = f"snapshot_{secrets.token_hex(8)}"
        config = {
            "deliver_policy": "last_per_subject",
            "ack_policy": "none",
            "filter_subject": self.subject_filter,
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": int(_INACTIVE_S * NS),
        }
        info = await self.admin.create_consumer(self.stream, self._consumer, config)
        if info.num_pending == 0:
            self._complete = True
            self._progress.set()
        return Source(self.stream, self._consumer)

    def _take(self, message: Msg) -> bool:
        meta = AckReply.parse(message.reply)
        if f".{self._consumer}." not in message.reply or self._complete:
            return True
        if meta.consumer_seq != len(self.found) + 1:
            return False
        self.found.append(Stored(self.stream, message.subject, meta.seq, message.data))
        self._complete = meta.num_pending == 0
        if self._complete or len(self.found) % _BATCH == 0:
            self._progress.set()
        return True
