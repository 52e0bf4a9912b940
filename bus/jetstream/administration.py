"""The administrator's step: makes a server's streams and shared consumers match `bus.topology`. Safe to repeat."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import msgspec
import structlog

from bus.jetstream.api import (
    CONSUMER_NOT_FOUND,
    NS,
    STREAM_NAME_EXISTS,
    STREAM_NOT_FOUND,
    ApiError,
    Cluster,
    Response,
    StreamInfo,
    ask,
)
from bus.jetstream.link import Link
from bus.jetstream.retrying import RetryLimits, retried
from bus.ports import WorkQueue
from bus.topology import StreamSpec

_log = structlog.get_logger()
_MAX_WAITING = 16_384
"""Pull requests that a queue keeps: one for every slot that waits."""
Config = dict[str, Any]
Outcome = Literal["created", "changed", "unchanged"]


class _Described(Response, frozen=True):
    """A stream or consumer with its configuration as the server keeps it."""

    config: Config = msgspec.field(default_factory=dict)


R = TypeVar("R", bound=Response)


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one stream or queue."""

    stream: str
    queue: str
    """Empty for the stream itself."""
    outcome: Outcome


@dataclass(slots=True)
class Administration:
    """Creates what is missing and changes what differs, over a connection that may."""

    link: Link
    limits: RetryLimits

    async def apply(self, specs: Iterable[StreamSpec], queues: Iterable[WorkQueue]) -> tuple[Applied, ...]:
        """Safe to repeat, and by several processes at once.

        Raises:
            ApiError: the server refuses a change (a work queue's filters overlap, say, or a stream's storage is to change).
        """
        specs = tuple(specs)
        made = [await self._stream(spec) for spec in specs]
        await self._spread([spec.name for spec in specs if spec.republish is not None and spec.replicas > 1])
        return (*made, *[await self._queue(queue) for queue in queues])

    async def _stream(self, spec: StreamSpec) -> Applied:
        wanted = _stream_config(spec)
        done: Outcome = "unchanged"  # also by an attempt whose answer was lost

        async def attempt(_: float) -> Outcome:
            nonlocal done
            found = await self._found(f"STREAM.INFO.{spec.name}", STREAM_NOT_FOUND)
            if found is not None and _holds(found, wanted):
                return done
            if found is None:
                done = "created"
                if await self._create(spec.name, wanted):
                    return done
            done = "changed"
            await self._ask(f"STREAM.UPDATE.{spec.name}", wanted, Response)
            return done

        outcome = await retried(self.link, f"creating stream {spec.name}", self.limits, attempt)
        return _reported(Applied(spec.name, "", outcome))

    async def _queue(self, queue: WorkQueue) -> Applied:
        wanted = _queue_config(queue)
        body = {"stream_name": queue.stream, "config": wanted}
        done: Outcome = "unchanged"  # also by an attempt whose answer was lost

        async def attempt(_: float) -> Outcome:
            nonlocal done
            found = await self._found(f"CONSUMER.INFO.{queue.stream}.{queue.name}", CONSUMER_NOT_FOUND)
            if found is not None and _holds(found, wanted):
                return done
            done = "created" if found is None else "changed"
            await self._ask(f"CONSUMER.CREATE.{queue.stream}.{queue.name}", body, Response)
            return done

        outcome = await retried(self.link, f"creating queue {queue.name} of {queue.stream}", self.limits, attempt)
        return _reported(Applied(queue.stream, queue.name, outcome))

    async def _spread(self, shards: Sequence[str]) -> None:
        """Each shard of the episodes is to be led by another server: the loss of one stalls the episodes of its own shards."""
        for number, stream in enumerate(shards if len(shards) > 1 else ()):

            async def attempt(_: float, number: int = number, stream: str = stream) -> None:
                cluster = (await self._ask(f"STREAM.INFO.{stream}", None, StreamInfo)).cluster or Cluster()
                members = sorted((cluster.leader, *(replica.name for replica in cluster.replicas or ())))
                wanted = members[number % len(members)]
                if cluster.leader and wanted != cluster.leader:
                    await self._ask(f"STREAM.LEADER.STEPDOWN.{stream}", {"placement": {"preferred": wanted}}, Response)
                    _log.debug("leader_placed", stream=stream, leader=wanted)

            try:
                await retried(self.link, f"placing the leader of {stream}", self.limits, attempt)
            except ApiError as error:
                # That server is away, or behind: the streams are there all the same.
                _log.info("leader_not_placed", stream=stream, reason=str(error))

    async def _create(self, name: str, wanted: Config) -> bool:
        """False: another process has just created it, with another configuration."""
        try:
            await self._ask(f"STREAM.CREATE.{name}", wanted, Response)
        except ApiError as error:
            if error.failure.err_code != STREAM_NAME_EXISTS:
                raise
            return False
        return True

    async def _found(self, verb: str, missing: int) -> Config | None:
        try:
            return (await self._ask(verb, None, _Described)).config
        except ApiError as error:
            if error.failure.err_code != missing:
                raise
            return None

    async def _ask(self, verb: str, body: Config | None, kind: type[R]) -> R:
        return await ask(self.link, verb, body, kind, timeout_s=self.limits.attempt_s)


def _reported(applied: Applied) -> Applied:
    log = _log.debug if applied.outcome == "unchanged" else _log.info
    kind = "queue" if applied.queue else "stream"
    log(f"{kind}_{applied.outcome}", stream=applied.stream, **({"queue": applied.queue} if applied.queue else {}))
    return applied


def _holds(found: Config, wanted: Config) -> bool:
    """Whether everything that is wanted stands in what the server keeps; it adds defaults and metadata of its own."""
    for key, value in wanted.items():
        have = found.get(key)
        if isinstance(value, dict):
            if not isinstance(have, dict) or not _holds(have, value):
                return False
        elif have != value and (have or value):
            return False
    return True


def _stream_config(spec: StreamSpec) -> Config:
    config: Config = {
        "name": spec.name,
        "subjects": list(spec.subjects),
        "retention": spec.retention,
        "storage": "file",
        "max_age": int(spec.max_age_s * NS),
        "max_bytes": spec.max_bytes,
        "max_msgs": spec.max_msgs,
        "max_msgs_per_subject": spec.max_msgs_per_subject,
        "discard": spec.discard,
        "discard_new_per_subject": spec.discard_new_per_subject,
        "deny_delete": spec.deny_delete,
        "num_replicas": spec.replicas,
        "allow_direct": spec.allow_direct,
        "metadata": dict(spec.metadata),
    }
    if spec.republish is not None:
        config["republish"] = {"src": spec.republish[0], "dest": spec.republish[1]}
    return config


def _queue_config(queue: WorkQueue) -> Config:
    return {
        "name": queue.name,
        "durable_name": queue.name,
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "ack_wait": int(queue.ack_wait_s * NS),
        "max_deliver": queue.max_deliver,
        "max_ack_pending": queue.max_ack_pending,
        "max_waiting": _MAX_WAITING,
        "filter_subjects": list(queue.subject_filters),
    }
