"""Requests in flight on one connection, and the replies that belong to them."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nats.aio.msg import Msg

from schemas.errors import BusError, BusUnavailable


class NoAnswer(BusUnavailable):
    """A request was sent and no reply came: it may have been carried out or not."""


class NoResponder(BusUnavailable):
    """Nobody serves the subject: the stream or consumer does not exist, or JetStream is not ready."""


@dataclass(slots=True)
class Call:
    """A request in flight."""

    subject: str
    token: str
    """Last part of the subject on which its replies come."""
    replies: asyncio.Future[list[Msg]]
    collected: list[Msg] | None
    """Replies so far, when more than one is expected."""


class Calls:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._by_token: dict[str, Call] = {}

    def new_token(self) -> str:
        return str(next(self._numbers))

    @contextmanager
    def begun(self, subject: str, *, many: bool) -> Iterator[Call]:
        """`many`: every reply is waited for, up to and including the first that is a status; else the first."""
        call = Call(subject, self.new_token(), asyncio.get_running_loop().create_future(), [] if many else None)
        self._by_token[call.token] = call
        try:
            yield call
        finally:
            del self._by_token[call.token]
            if call.replies.done() and not call.replies.cancelled():
                call.replies.exception()  # marks it as seen: sending may have failed first

    def answered(self, message: Msg) -> None:
        call = self._by_token.get(message.subject.rpartition(".")[2])
        if call is None or call.replies.done():
            return
        if call.collected is None:
            call.replies.set_result([message])
            return
        call.collected.append(message)
        if status_of(message):
            call.replies.set_result(call.collected)

    def fail(self, error: Callable[[], BusError], *, subject: str | None = None) -> None:
        """All of them, or those on one subject, whose case does not count; each with an error of its own."""
        for call in self._by_token.values():
            if (subject is None or call.subject.lower() == subject) and not call.replies.done():
                call.replies.set_exception(error())


def status_of(message: Msg) -> str:
    """The status of a control message ("408", "503", ...); empty for one that carries data."""
    return message.headers.get("Status", "") if message.headers else ""
