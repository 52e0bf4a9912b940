"""Decides which judgements come next: one endless stream online, passes over a stored data set offline. Pure.

Invariant: a position is a function of what was consumed, and the checkpoint holds it. So a trainer that was killed uses
nothing twice and leaves nothing out, wherever in whichever pass it was.
"""

from dataclasses import dataclass

import msgspec

from schemas.errors import ConfigurationError
from schemas.feeder_config import FeederConfig
from schemas.ids import EpisodeId


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """How far the trainer has come on JUDGED."""

    seq: int = 0
    """Sequence up to which everything was consumed in this pass."""
    num_passes: int = 0
    """Complete passes; always 0 online."""
    num_in_pass: int = 0
    """Judgements consumed in this pass."""


class Consumed(msgspec.Struct, frozen=True, array_like=True):
    """One judgement that a trainer has consumed."""

    seq: int
    episode: EpisodeId


NUM_REMEMBERED = 4096
"""Judgements that are known again: more than come between two moments at which a server forces its files to disk."""


@dataclass(frozen=True)
class Passes:
    """The data set's size decides where a pass ends: no marker has to stand on the stream."""

    num_stored: int | None
    """Judgements of one pass; None: they never end."""

    @classmethod
    def of(cls, feeder: FeederConfig) -> "Passes":
        """Raises `ConfigurationError` for offline training on a data set of unknown size."""
        if feeder.mode != "offline":
            return cls(None)
        if feeder.num_stored == 0:
            raise ConfigurationError(
                "feeder_config.mode is offline and feeder_config.num_stored is 0: write how many judged training episodes the "
                "data set has, or let millrace replay SOURCE --train do it"
            )
        return cls(feeder.num_stored)

    def remaining(self, position: Position) -> int | None:
        """Judgements up to the end of the pass; None: no end."""
        return None if self.num_stored is None else self.num_stored - position.num_in_pass

    def after(self, position: Position, *, seq: int, count: int) -> Position:
        """The position behind a batch of `count` judgements whose last one has sequence `seq`.

        Example: with 5 stored, batches of 2 end at (seq 2), (seq 4), then at the begin of the next pass.
        """
        if self.num_stored is not None and position.num_in_pass + count >= self.num_stored:
            return Position(num_passes=position.num_passes + 1)
        return Position(seq=seq, num_passes=position.num_passes, num_in_pass=position.num_in_pass + count)
