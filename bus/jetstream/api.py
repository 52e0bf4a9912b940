"""JetStream's administrative requests: JSON out, JSON in, one error type for what the server refuses."""

from typing import Any, TypeVar

import msgspec

from bus.jetstream.link import Link
from schemas.errors import BusError

STREAM_NOT_FOUND = 10059
MESSAGE_NOT_FOUND = 10037
CONSUMER_NOT_FOUND = 10014
STREAM_NAME_EXISTS = 10058
RETRYABLE = frozenset({10005, 10008, 10009})
"""A cluster that has just started or is electing a leader: no suitable peers, temporarily unavailable, not the leader."""
_REMEDY = {STREAM_NOT_FOUND: ": the run's streams are not there yet, or no longer; millrace streams creates them"}
NS = 1_000_000_000


class ApiFailure(msgspec.Struct, frozen=True):
    code: int = 0
    err_code: int = 0
    description: str = ""


class ApiError(BusError):
    """The server refused; `failure.err_code` is its own number for the reason."""

    def __init__(self, subject: str, failure: ApiFailure) -> None:
        super().__init__(f"{subject}: {failure.description} ({failure.err_code}){_REMEDY.get(failure.err_code, '')}")
        self.failure = failure


class Response(msgspec.Struct, frozen=True):
    error: ApiFailure | None = None


class StreamState(msgspec.Struct, frozen=True):
    messages: int = 0
    bytes: int = 0
    first_seq: int = 1
    first_ts: str = ""
    last_seq: int = 0
    subjects: dict[str, int] | None = None


class StreamLimits(msgspec.Struct, frozen=True):
    max_msgs: int = -1
    max_bytes: int = -1


class Replica(msgspec.Struct, frozen=True):
    name: str = ""
    current: bool = False
    offline: bool = False
    lag: int = 0


class Cluster(msgspec.Struct, frozen=True):
    name: str = ""
    leader: str = ""
    replicas: tuple[Replica, ...] | None = None


class StreamInfo(Response, frozen=True):
    state: StreamState = StreamState()
    config: StreamLimits = StreamLimits()
    cluster: Cluster | None = None
    total: int = 0
    limit: int = 0
    ts: str = ""
    """The server's time as it answers."""


class AccountLimits(msgspec.Struct, frozen=True):
    max_storage: int = -1


class AccountInfo(Response, frozen=True):
    storage: int = 0
    limits: AccountLimits = AccountLimits()


class SequencePair(msgspec.Struct, frozen=True):
    stream_seq: int = 0


class ConsumerInfo(Response, frozen=True):
    name: str = ""
    delivered: SequencePair = SequencePair()
    ack_floor: SequencePair = SequencePair()
    num_pending: int = 0
    num_ack_pending: int = 0
    num_redelivered: int = 0
    num_waiting: int = 0


class Purged(Response, frozen=True):
    purged: int = 0


class StoredMessage(msgspec.Struct, frozen=True):
    """As `STREAM.MSG.GET` gives it."""

    subject: str
    seq: int
    time: str
    data: bytes = b""


class Got(Response, frozen=True):
    message: StoredMessage | None = None


class PubAck(Response, frozen=True):
    stream: str = ""
    seq: int = 0


R = TypeVar("R", bound=Response)


async def ask(link: Link, verb: str, body: dict[str, Any] | None, kind: type[R], *, timeout_s: float) -> R:
    """One request under `$JS.API`.

    Raises:
        ApiError: the server refused it.
        BusUnavailable: nobody answered.
    """
    payload = msgspec.json.encode(body) if body is not None else b""
    reply = await link.request(f"$JS.API.{verb}", payload, timeout_s=timeout_s)
    response = msgspec.json.decode(reply.data, type=kind)
    if response.error is not None:
        raise ApiError(verb, response.error)
    return response
