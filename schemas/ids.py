"""Identities: deterministic, and always safe as one token of a NATS subject.

An identity is computed from what it names, never drawn at random, so that work done twice collapses into one record.
"""

import re
import zlib
from typing import NewType

from schemas.errors import ConfigurationError

RunName = NewType("RunName", str)
TaskId = NewType("TaskId", str)
"""Names one task of a task file: `click_button-000041`."""
GroupId = NewType("GroupId", str)
"""Names the episodes that share one task in one round: `train-r0003-<task>`."""
EpisodeId = NewType("EpisodeId", str)
"""Names one admitted episode: `<group>-m0`."""
WorkerId = NewType("WorkerId", str)
PolicyVersion = NewType("PolicyVersion", int)
"""Counts published checkpoints; 0 is the model that the run started from."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,128}\Z")


def subject_token(text: str, *, what: str) -> str:
    """Returns `text` if it can stand as one token of a NATS subject.

    Raises:
        ConfigurationError: it holds other characters than letters, digits, `_` and `-`, or more than 128 of them.
    """
    if not _TOKEN.match(text):
        raise ConfigurationError(f"{what} {text!r} cannot name a stream or subject: use 1 to 128 letters, digits, '_' or '-'")
    return text


def group_id(split: str, round_index: int, task: TaskId) -> GroupId:
    return GroupId(f"{split}-r{round_index:04d}-{task}")


def group_in(episode: EpisodeId) -> GroupId:
    """The group in the name of an episode."""
    return GroupId(episode.rpartition("-m")[0])


def episode_id(group: GroupId, member: int) -> EpisodeId:
    return EpisodeId(f"{group}-m{member}")


def shard_of(episode: EpisodeId, num_shards: int) -> int:
    """The EPISODES shard that holds an episode's chain: the same on every machine and in every process."""
    return zlib.crc32(episode.encode()) % num_shards
