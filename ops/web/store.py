"""Defines the port that the viewer reads finished episodes through."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ops.archive.episodes import StoredEpisode
from ops.web.index import EpisodeIndex
from schemas.config import Config
from schemas.ids import EpisodeId
from schemas.messages import JudgeCall, Observation


@dataclass(frozen=True, slots=True)
class Fetched:
    """One episode, as far as it can be read."""

    episode: StoredEpisode
    problems: tuple[str, ...] = ()
    """Sentences about what cannot."""


class TrajectoryStore(Protocol):
    @property
    def keeps_calls(self) -> bool:
        """Whether what judges' models answered is kept here."""
        ...

    async def fill(self, index: EpisodeIndex) -> None:
        """Reads every episode and judgement into the index, and those that come. Runs until cancelled."""
        ...

    async def episode(self, episode: EpisodeId) -> Fetched | None:
        """None: nothing of it is kept.

        Raises:
            BusUnavailable: no server answers.
            ArchiveDamaged: its row cannot be read.
        """
        ...

    async def last_seen(self, episode: EpisodeId, attempt: int) -> Observation | None:
        """The last page that an attempt saw, without the rest of the episode; None: it is not kept.

        Raises:
            BusUnavailable: no server answers.
            ArchiveDamaged: it cannot be read.
        """
        ...

    async def calls(self, rubric: str, episode: EpisodeId) -> Sequence[JudgeCall]:
        """What a rubric's models answered, in order. Raises `BusUnavailable`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What the viewer was given to show."""

    store: TrajectoryStore
    config: Config
    """Of the run that played the episodes."""
    kind: str
    """`run` or `archive`."""
