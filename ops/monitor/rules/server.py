"""Alerts about the server: unreachable, slow, full, without a leader, or with followers that are behind."""

from collections.abc import Iterator

from bus.ports import StreamState
from ops.monitor.alerts.alert import Condition, Key, Severity
from ops.monitor.alerts.look import Look, critical, span, warning
from ops.monitor.rules import alert


@alert("server")
def conditions(look: Look) -> Iterator[Condition]:
    yield from _answers(look)
    for stream in look.state.streams.values():
        yield from _room(look, stream)
        yield from _replicas(look, stream)
    yield from _disk(look)


def _answers(look: Look) -> Iterator[Condition]:
    server = look.state.server
    silent_s = look.now - (server.answered_at or look.state.began_at)
    if silent_s > look.bounds.server_silent_s:
        yield critical(
            Key("server_unreachable"),
            f"the server has not answered for {span(silent_s)}: {server.error or 'nothing is heard from it'}",
            "start it again (millrace server, or your cluster's own way): every role goes on by itself, nothing is lost",
            after_s=0.0,
        )
    elif server.answer_s is not None and look.is_above(server.answer_s, look.bounds.slow_server_s, Key("server_slow")):
        yield warning(
            Key("server_slow"),
            f"the server takes {server.answer_s:.2f} s for an answer",
            "look at its disk and processor; more shards (bus_config.num_shards) or a machine of its own help",
        )


def _room(look: Look, stream: StreamState) -> Iterator[Condition]:
    if not stream.max_bytes:
        return
    key, share = Key("stream_full", stream.stream), stream.num_bytes / stream.max_bytes
    if look.is_above(share, look.bounds.most_full, key):
        yield _full(look, key, share, f"{stream.stream} holds {share:.0%} of its {stream.max_bytes / 1e9:.1f} GB")


def _disk(look: Look) -> Iterator[Condition]:
    store, disk = look.state.store, look.state.disk
    if store is not None and store.max_bytes:
        key, share = Key("disk_full", "store"), store.num_bytes / store.max_bytes
        if look.is_above(share, look.bounds.most_full, key):
            yield _full(look, key, share, f"the streams take {share:.0%} of the {store.max_bytes / 1e9:.1f} GB they may")
    if disk is not None and disk.num_bytes:
        key, share = Key("disk_full", "disk"), 1.0 - disk.free_bytes / disk.num_bytes
        if look.is_above(share, look.bounds.most_full, key):
            yield _full(
                look, key, share, f"the disk of {disk.path} is {share:.0%} full, {disk.free_bytes / 1e9:.1f} GB are free"
            )


def _full(look: Look, key: Key, share: float, sentence: str) -> Condition:
    is_critical = share > (1.0 + look.bounds.most_full) / 2.0
    return Condition(
        key=key,
        severity=Severity.CRITICAL if is_critical else Severity.WARNING,
        sentence=sentence,
        remedy="archive (millrace archive --once), then shorten bus_config.episodes_max_age_s or add disk; "
        "a full stream makes its writers wait and loses nothing",
    )


def _replicas(look: Look, stream: StreamState) -> Iterator[Condition]:
    if stream.leader == "":
        yield critical(
            Key("stream_without_leader", stream.stream),
            f"{stream.stream} has no leader: nobody can write to it",
            "start the servers of the cluster that are down: more than half of a stream's replicas must run",
        )
    for replica in stream.replicas:
        if replica.is_offline or replica.num_behind > look.bounds.most_replica_lag:
            how = "is offline" if replica.is_offline else f"is {replica.num_behind:,} operations behind"
            yield warning(
                Key("replica_behind", f"{stream.stream} {replica.server}"),
                f"{replica.server}, a replica of {stream.stream}, {how}",
                "start that server again, or look at its disk and network; it catches up by itself",
            )
