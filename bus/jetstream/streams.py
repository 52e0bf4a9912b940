"""Creates streams and consumers as `bus.topology` describes them. Every request here may be repeated.

A memory stream, and the consumers on it, vanish with the server process. Whoever meets the gap creates them again.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from bus.jetstream.api import (
    CONSUMER_NOT_FOUND,
    NS,
    STREAM_NAME_EXISTS,
    STREAM_NOT_FOUND,
    ApiError,
    ConsumerInfo,
    Response,
    StreamInfo,
    ask,
)
from bus.jetstream.link import Link
from bus.jetstream.patience import Patience, persevere
from bus.ports import WorkQueue
from bus.topology import StreamSpec
from schemas.errors import BusUnavailable

R = TypeVar("R", bound=Response)
_MAX_WAITING = 16_384
"""Pull requests that a queue keeps: one for every slot that waits."""


class StreamAdmin:
    """What this connection knows about the run's streams."""

    def __init__(self, link: Link, patience: Patience, specs: Iterable[StreamSpec]) -> None:
        self._link = link
        self._patience = patience
        self._specs = {spec.name: spec for spec in specs}

    async def create_stream(self, spec: StreamSpec) -> None:
        """Creates a stream, or changes the existing one to match."""
        self._specs[spec.name] = spec

        async def attempt() -> None:
            try:
                await self._ask(f"STREAM.CREATE.{spec.name}", _stream_config(spec), StreamInfo)
            except ApiError as error:
                if error.failure.err_code != STREAM_NAME_EXISTS:
                    raise
                await self._ask(f"STREAM.UPDATE.{spec.name}", _stream_config(spec), StreamInfo)

        await persevere(self._link, f"creating stream {spec.name}", self._patience, attempt)

    async def create_queue(self, queue: WorkQueue) -> None:
        """Creates a durable consumer, or changes the existing one to match."""
        await self.create_consumer(queue.stream, queue.name, _queue_config(queue))

    async def create_consumer(self, stream: str, name: str, config: dict[str, Any]) -> ConsumerInfo:
        body = {"stream_name": stream, "config": {"name": name, **config}}

        async def attempt() -> ConsumerInfo:
            try:
                return await self._ask(f"CONSUMER.CREATE.{stream}.{name}", body, ConsumerInfo)
            except ApiError as error:
                if error.failure.err_code != STREAM_NOT_FOUND:
                    raise
                await self.restore(stream)
                return await self._ask(f"CONSUMER.CREATE.{stream}.{name}", body, ConsumerInfo)

        return await persevere(self._link, f"creating consumer {name} on {stream}", self._patience, attempt)

    async def remove_consumer(self, stream: str, name: str) -> None:
        async def attempt() -> None:
            try:
                await self._ask(f"CONSUMER.DELETE.{stream}.{name}", None, Response)
            except ApiError as error:
                if error.failure.err_code not in (CONSUMER_NOT_FOUND, STREAM_NOT_FOUND):
                    raise

        await persevere(self._link, f"removing consumer {name} of {stream}", self._patience, attempt)

    async def consumer(self, stream: str, name: str) -> ConsumerInfo | None:
        async def attempt() -> ConsumerInfo | None:
            try:
                return await self._ask(f"CONSUMER.INFO.{stream}.{name}", None, ConsumerInfo)
            except ApiError as error:
                if error.failure.err_code in (CONSUMER_NOT_FOUND, STREAM_NOT_FOUND):
                    return None
                raise

        return await persevere(self._link, f"asking for consumer {name} of {stream}", self._patience, attempt)

    async def stream(self, name: str, body: dict[str, Any] | None = None) -> StreamInfo:
        """Raises `BusUnavailable` when the stream does not exist."""

        async def attempt() -> StreamInfo:
            try:
                return await self._ask(f"STREAM.INFO.{name}", body, StreamInfo)
            except ApiError as error:
                if error.failure.err_code != STREAM_NOT_FOUND:
                    raise
                await self.restore(name)
                return await self._ask(f"STREAM.INFO.{name}", body, StreamInfo)

        return await persevere(self._link, f"asking for stream {name}", self._patience, attempt)

    async def explain_silence(self, stream: str) -> None:
        """Finds out why nobody answers for a stream: restores a lost memory stream, otherwise returns to try again.

        Raises:
            BusUnavailable: the stream does not exist and is not one that may vanish.
        """
        try:
            await self._ask(f"STREAM.INFO.{stream}", None, StreamInfo)
        except ApiError as error:
            if error.failure.err_code == STREAM_NOT_FOUND:
                await self.restore(stream)

    async def restore(self, stream: str) -> None:
        spec = self._specs.get(stream)
        if spec is None or spec.storage != "memory":
            raise BusUnavailable(
                f"stream {stream} does not exist on this server: create the run's streams first (the server role does), "
                "or correct bus_config.run and bus_config.url"
            )
        await self.create_stream(spec)

    async def _ask(self, verb: str, body: dict[str, Any] | None, kind: type[R]) -> R:
        return await ask(self._link, verb, body, kind, timeout_s=self._patience.attempt_s)


def _stream_config(spec: StreamSpec) -> dict[str, Any]:
    config: dict[str, Any] = {
        "name": spec.name,
        "subjects": list(spec.subjects),
        "retention": spec.retention,
        "storage": spec.storage,
        "max_age": int(spec.max_age_s * NS),
        "max_msgs_per_subject": spec.max_msgs_per_subject,
        "discard": "new" if spec.discard_new else "old",
        "discard_new_per_subject": spec.discard_new and spec.max_msgs_per_subject > 0,
        "num_replicas": spec.replicas,
        "allow_direct": spec.allow_direct,
        "max_msgs": -1,
        "max_bytes": -1,
    }
    if spec.republish is not None:
        config["republish"] = {"src": spec.republish[0], "dest": spec.republish[1]}
    return config


def _queue_config(queue: WorkQueue) -> dict[str, Any]:
    config: dict[str, Any] = {
        "durable_name": queue.name,
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "ack_wait": int(queue.ack_wait_s * NS),
        "max_deliver": queue.max_deliver,
        "max_ack_pending": queue.max_ack_pending,
        "max_waiting": _MAX_WAITING,
        "filter_subjects": list(queue.subject_filters),
    }
    if queue.inactive_s is not None:
        config["inactive_threshold"] = int(queue.inactive_s * NS)
    return config
