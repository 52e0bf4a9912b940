"""Derives the servers' permissions of each role: pure policy.

A role may write the subjects that it is the author of, read the streams that it works from, and pull from the queues that it
shares with its own kind (`bus.permissions`). Whatever is not granted is refused by the server. Only the administrator creates,
changes or deletes streams and consumers; that also closes the way around by a consumer that delivers to another's subject.

`docs/permissions.md` shows what that comes to; a test tries every cell on a real server.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bus.address import inbox_of
from bus.permissions import Access, role_permissions
from bus.subjects import Subjects
from bus.topology import StreamSpec, streams
from schemas.bus_config import BusConfig

__all__ = ["Access", "Grant", "grants"]

_API = "$JS.API"


@dataclass(frozen=True, slots=True)
class Grant:
    """What one user of the server may do; everything else is refused."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answers: tuple[str, ...] = ()
    """Those of `subscribe` on which it may answer: once, on the reply subject that the message names."""


def grants(subjects: Subjects, config: BusConfig, role: Access, rubrics: Iterable[str]) -> Grant:
    """The permissions of one role's key in one run. `rubrics` are those that the run's judges score by."""
    if role is Access.ADMIN:
        return Grant(publish=(">",), subscribe=(">",))
    specs = {spec.name: spec for spec in streams(subjects, config)}
    own = role_permissions(subjects, config, rubrics)[role]
    readable = dict.fromkeys((*own.reads, *own.tails))
    publish = (
        f"{_API}.INFO",
        *own.writes,
        *(subject for stream in readable for subject in _reading(stream)),
        *(subject for spec in specs.values() if spec.name not in readable for subject in _confirming(spec, own.writes)),
        *(subject for queue in own.works for subject in _pulling(queue.stream, queue.name)),
        *(f"{_API}.STREAM.MSG.GET.{stream}" for stream in own.decides_by),
        *(f"{_API}.STREAM.PURGE.{stream}" for stream in own.purges),
        *(_listing(specs) if own.inspects else ()),
    )
    followed = (_followed(subjects, subject) for stream in own.tails for subject in specs[stream].subjects)
    subscribe = (f"{inbox_of(role)}.>", *own.hears, *own.answers, *followed)
    return Grant(tuple(dict.fromkeys(publish)), tuple(dict.fromkeys(subscribe)), own.answers)


def _followed(subjects: Subjects, captured: str) -> str:
    """What to listen to so as to hear a stream grow. Filters of readers end in `>`, which no `*` of a permission covers."""
    first, kind, *_ = captured.split(".")
    return f"{first}.{kind}.>" if first == subjects.run else captured


def _reading(stream: str) -> Iterator[str]:
    yield f"{_API}.STREAM.INFO.{stream}"
    yield f"{_API}.DIRECT.GET.{stream}"
    yield f"{_API}.DIRECT.GET.{stream}.>"


def _listing(streams: Iterable[str]) -> Iterator[str]:
    """What `nats stream report` and `nats consumer report` ask, too: an account holds one run."""
    yield from (f"{_API}.STREAM.LIST", f"{_API}.STREAM.NAMES")
    for stream in streams:
        yield from (f"{_API}.CONSUMER.{what}" for what in (f"INFO.{stream}.*", f"LIST.{stream}", f"NAMES.{stream}"))


def _confirming(spec: StreamSpec, writes: tuple[str, ...]) -> Iterator[str]:
    """After an ambiguous timeout a writer reads back what stands on its own subject, and asks whether the stream exists."""
    own = [subject for subject in writes if any(covers(captured, subject) for captured in spec.subjects)]
    if own:
        yield f"{_API}.STREAM.INFO.{spec.name}"
        yield from (f"{_API}.DIRECT.GET.{spec.name}.{subject}" for subject in own)


def _pulling(stream: str, consumer: str) -> Iterator[str]:
    yield f"{_API}.STREAM.INFO.{stream}"
    yield f"{_API}.CONSUMER.INFO.{stream}.{consumer}"
    yield f"{_API}.CONSUMER.MSG.NEXT.{stream}.{consumer}"
    yield f"$JS.ACK.{stream}.{consumer}.>"


def covers(pattern: str, subject: str) -> bool:
    """Whether every subject that `subject` stands for (it may hold wildcards too) is one that `pattern` stands for."""
    wanted, given = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        if len(given) <= len(wanted):
            return False
        given = given[: len(wanted)]
    elif len(given) != len(wanted):
        return False
    return all(theirs != ">" and ours in ("*", theirs) for ours, theirs in zip(wanted, given, strict=True))
