"""Plays stored episodes into a run, at the speed that is asked for. Nothing is played in a browser.

Invariant: an episode is written whole, chain first, trajectory, then its judgements, so that whoever reads a trajectory finds
what it refers to. Writing again changes nothing, so a replay that was killed is simply begun again.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio

from ops.archive.episodes import EpisodeSource, StoredEpisode, StoredJudgement
from ops.archive.importer import Importer
from ops.replay.request import Selection


@dataclass
class Played:
    """How far a replay has come."""

    num_read: int = 0
    num_incomplete: int = 0
    """Left out: part of the chain has aged out."""
    num_replayed: int = 0
    num_known: int = 0
    """Of those, how many the run held already."""
    num_judgements: int = 0
    """Of those, taken with them."""

    def share(self, num_episodes: int | None, limit: int | None) -> tuple[int, int | None]:
        """How many of how many: of the source's episodes, or of the selected ones where their limit is nearer."""
        if limit is not None and (num_episodes is None or self.num_replayed * num_episodes >= self.num_read * limit):
            return self.num_replayed, limit
        return self.num_read, num_episodes


class Pace:
    """The spacing of the episodes' ends, divided by `speed`; None: as fast as the run takes them."""

    def __init__(
        self,
        speed: float | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._speed = speed
        self._clock = clock
        self._sleep = sleep
        self._began: tuple[float, float] | None = None

    async def wait(self, ended_at: float) -> None:
        """Returns when an episode that ended then is due."""
        await self._sleep(self.wait_s(ended_at))

    def wait_s(self, ended_at: float) -> float:
        """Seconds until an episode that ended then is due; the first one is due at once."""
        if self._speed is None:
            return 0.0
        if self._began is None:
            self._began = (self._clock(), ended_at)
        started, first_ended_at = self._began
        return max(0.0, started + (ended_at - first_ended_at) / self._speed - self._clock())


async def play(
    source: EpisodeSource,
    importer: Importer,
    selection: Selection,
    *,
    pace: Pace,
    judgements: bool,
    progress: Callable[[Played], None] = lambda _: None,
) -> Played:
    """Writes every selected episode, with its judgements when they are wanted.

    Raises:
        ImportConflict: the run holds an episode of that name with other content.
    """
    played = Played()
    async for stored in source.episodes():
        played.num_read += 1
        played.num_incomplete += not stored.is_complete
        if selection.takes(stored):
            await pace.wait(stored.trajectory.ended_at)
            taken = selection.judgements(stored) if judgements else ()
            played.num_known += await _write(importer, stored, taken)
            played.num_replayed += 1
            played.num_judgements += len(taken)
        progress(played)
        if played.num_replayed == selection.limit:
            break
    return played


async def _write(importer: Importer, stored: StoredEpisode, judgements: Sequence[StoredJudgement]) -> bool:
    """Whether the run held all of it already."""
    records, judged = importer.done.num_records, importer.done.num_judgements
    await importer.episode(stored)
    for judgement in judgements:
        await importer.judgement(judgement)
    return (importer.done.num_records, importer.done.num_judgements) == (records, judged)
