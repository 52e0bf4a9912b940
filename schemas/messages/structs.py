"""Defines the base of every message and part of one."""

from typing import Literal

import msgspec

from schemas.ids import EpisodeId


class Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all parts of messages."""


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all messages; subclasses carry a versioned tag."""

    def contradiction(self) -> str:
        """What in a message does not agree with the rest of it, for people; empty: it all agrees."""
        return ""


class RecordRef(Struct, frozen=True, array_like=True):
    """Names one observation or answer of an episode's chain, wherever the chain is kept: in a run's streams or an archive.

    No message holds one: a message says which steps it means, and the episode and attempt are its own.
    """

    episode: EpisodeId
    attempt: int
    kind: Literal["obs", "act"]
    step: int
