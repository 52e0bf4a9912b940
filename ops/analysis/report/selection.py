"""Selects the episodes that a report is about, and the rubric whose judgements count."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta

from ops.archive.episodes import StoredEpisode
from ops.console.times import time_of
from schemas.errors import ConfigurationError
from schemas.messages import Split


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Empty: every episode."""

    split: Split | None = None
    since_s: float | None = None
    """Unix seconds that an episode has to have ended at, or later."""
    until_s: float | None = None
    """It has to have ended before."""

    def takes(self, episode: StoredEpisode) -> bool:
        ended_s = ended_at(episode)
        return (
            self.split in (None, episode.trajectory.task.split)
            and (self.since_s is None or ended_s >= self.since_s)
            and (self.until_s is None or ended_s < self.until_s)
        )


def ended_at(episode: StoredEpisode) -> float:
    """Unix seconds, by the browser worker's clock, else by the server's."""
    return episode.trajectory.ended_at or episode.trajectory_time_s


def moment_s(option: str, text: str | None, *, clock: Callable[[], float] = time.time) -> float | None:
    """Unix seconds. Raises `ConfigurationError` when the text is no time."""
    if text is None:
        return None
    found = time_of(text)
    if found is None:
        raise ConfigurationError(f"{option} {text} is no time: write 2026-01-31T12:00, or 10m, 2h, 1d for ago")
    return clock() - found.total_seconds() if isinstance(found, timedelta) else found.timestamp()


def counting_rubric(wanted: str | None, known: Collection[str], trained: str) -> str:
    """Whose judgements count: the one that is wanted, else the run's own, else the only one that there is.

    Raises:
        ConfigurationError: nothing is judged by it, or it is not clear which.
    """
    listed = ", ".join(sorted(known)) or "no one"
    if wanted is not None:
        if wanted not in known:
            raise ConfigurationError(f"nothing is judged by {wanted} there, only by {listed}: write one of these as --rubric")
        return wanted
    if trained in known or not known:
        return trained
    if len(known) > 1:
        raise ConfigurationError(f"episodes there are judged by {listed}: choose one with --rubric")
    return next(iter(known))
