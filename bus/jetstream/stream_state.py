"""The server's words about a stream, as `bus.ports.StreamState`."""

from bus.jetstream.api import StreamInfo
from bus.jetstream.read import unix_seconds
from bus.ports import ReplicaState, StreamState


def standing_of(stream: str, info: StreamInfo) -> StreamState:
    state, cluster = info.state, info.cluster
    clustered = cluster is not None and cluster.name != ""
    return StreamState(
        stream=stream,
        num_messages=state.messages,
        num_bytes=state.bytes,
        first_seq=max(1, state.first_seq),
        last_seq=state.last_seq,
        # The server writes the year 1 for an empty stream.
        oldest_s=unix_seconds(state.first_ts) if state.messages else 0.0,
        now_s=unix_seconds(info.ts),
        max_messages=max(0, info.config.max_msgs),
        max_bytes=max(0, info.config.max_bytes),
        leader=cluster.leader if cluster is not None and clustered else None,
        replicas=tuple(
            ReplicaState(replica.name, replica.current, replica.offline, replica.lag)
            for replica in (cluster.replicas if cluster is not None and clustered else None) or ()
        ),
    )
