"""Stored records as plain JSON for people and programs; screenshots are named by their content and left out. Pure."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from bus.codec import decode
from ops.archive.episodes import StoredEpisode
from ops.web.detail import Chain
from schemas.errors import MessageCorrupt, RecordGone
from schemas.messages import AnyMessage, JudgeCall, NetworkRecord, Observation


def raw_step(chain: Chain, number: int) -> dict[str, Any]:
    """Raises `RecordGone` when there is nothing of this step."""
    found = {"observation": chain.observations.get(number), "answer": chain.answers.get(number)}
    if all(record is None for record in found.values()):
        raise RecordGone(f"Nothing of step {number + 1} is kept.")
    return {
        name: {"stored_at": record[1], "message": plain(record[0])} for name, record in found.items() if record is not None
    }


def raw_episode(episode: StoredEpisode, calls: Sequence[JudgeCall]) -> dict[str, Any]:
    return {
        "trajectory": plain(episode.trajectory),
        "judgements": [{"stored_at": one.time_s, "message": _decoded(one.data)} for one in episode.judgements],
        "calls": [plain(call) for call in calls],
        "records": [
            {"record": one.subject_suffix, "stored_at": one.time_s, "message": _decoded(one.data)} for one in episode.records
        ],
    }


def plain(message: AnyMessage) -> Any:
    """A message as JSON has it, with the digest of its screenshot or traffic in place of the bytes."""
    values = msgspec.to_builtins(message)
    if isinstance(message, Observation):
        data = message.screenshot.data
        values["screenshot"]["data"] = _named(data)
    elif isinstance(message, NetworkRecord):
        values["har"] = _named(message.har)
    return values


def _named(data: bytes) -> str:
    return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"


def _decoded(data: bytes) -> Any:
    try:
        return plain(decode(data))
    except MessageCorrupt as error:
        return {"unreadable": str(error)}
