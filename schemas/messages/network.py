"""Defines the record of an attempt's network traffic."""

from schemas.messages.structs import Message, Struct
from schemas.ranges import Attempt, Count, Episode, Sha256, StepCount


class NetworkSummary(Struct, frozen=True):
    """What a trajectory says of its attempt's record."""

    sha256: Sha256
    """Of the record's bytes as they are stored: its name in archives is `<sha256>.har.gz`."""
    num_entries: Count
    """Requests in it."""
    num_bytes: Count
    """As stored."""
    missing: tuple[str, ...] = ()
    """What is not in it although it went over the network, a sentence each; empty: it is whole."""
    num_earlier_attempts: Count = 0
    """In which a policy had answered: what they sent is in no record of this attempt."""


class NetworkRecord(Message, frozen=True, tag="network/1"):
    """What the pages of one attempt sent and got, without secrets. Stands in the chain ahead of its end."""

    episode: Episode
    attempt: Attempt
    har: bytes
    """HAR 1.2, as JSON in gzip."""
    summary: NetworkSummary
    num_observations: StepCount = 0
    """Of the attempt, as it ends."""
    num_steps: StepCount = 0

    def contradiction(self) -> str:
        if self.summary.num_bytes != len(self.har):
            return f"num_bytes {self.summary.num_bytes} of {len(self.har)} bytes"
        if not self.num_steps <= self.num_observations <= self.num_steps + 1:
            return f"num_steps {self.num_steps} with num_observations {self.num_observations}"
        return ""
