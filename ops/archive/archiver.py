"""The archiver: copies ended episodes and judgements from a run's streams to files, each exactly once.

It follows TRAJECTORIES and JUDGED. Screenshots are written as episodes are read; rows gather until a part is due. A part
appears whole under its name, screenshots and gaps before it, and the names of the parts are the only memory of how far it
came: killed anywhere, it goes on behind the last part and makes the same files. So it does when its lease was lost, to a long
stall of its own or of the server, once it holds the lease again.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import anyio
import anyio.to_thread
import structlog

from bus.bulkhead import Bulkhead
from bus.patience import move_on_after_running
from bus.ports import Bus, Lease
from bus.subjects import Subjects
from ops.archive.folder import ArchiveFolder
from ops.archive.following import Follower
from ops.archive.keeping import EpisodeKeeper, JudgementKeeper
from ops.archive.stream_source import present_end
from schemas.archive_config import ArchiveConfig
from schemas.bus_config import BusConfig
from schemas.errors import ArchiveError

_log = structlog.get_logger()
_LEASE_TTL_S = 5.0
_LEASE_PATIENCE_S = 3 * _LEASE_TTL_S
_WARN_SHARE = 0.8


@dataclass(frozen=True, kw_only=True)
class Archived:
    """What one archiver has written since it began."""

    num_episodes: int = 0
    num_judgements: int = 0
    num_parts: int = 0
    num_gaps: int = 0
    screenshot_bytes: int = 0
    num_waiting: int = 0
    """Read, and in no part yet."""


@dataclass(frozen=True, kw_only=True)
class Archiver:
    """One run's archiver. The folder must be held with `ArchiveFolder.writing`."""

    bus: Bus
    subjects: Subjects
    folder: ArchiveFolder
    config: ArchiveConfig
    bus_config: BusConfig
    progress: Callable[[Archived], None] = lambda _: None
    bulkhead: Bulkhead | None = None
    """Of a worker; without one, what nobody foresaw goes on."""
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time

    async def run(self, *, once: bool = False) -> Archived:
        """Archives for ever, or with `once` what is there now.

        Raises:
            ArchiveError: the streams are not those that the archive was begun from; with `once`, another archiver is active.
        """
        followers = self._followers()
        present_ends = [await present_end(self.bus, each.stream, each.subject_filter) for each in followers]
        ends, patience_s = (present_ends, _LEASE_PATIENCE_S) if once else ((None, None), math.inf)
        while not await self._holding_lease(followers, ends, patience_s):
            _log.warning("archiver_lease_lost", hint="it is taken again, and archiving goes on behind the last part")
        return self._archived(followers)

    async def _holding_lease(self, followers: Sequence[Follower], ends: Sequence[int | None], patience_s: float) -> bool:
        """Whether all is archived; False: the lease was lost before."""
        done = False
        async with (
            move_on_after_running(patience_s) as patience,
            self.bus.lease("archiver", ttl_s=_LEASE_TTL_S) as lease,
        ):
            patience.left_s = math.inf
            for follower in followers:
                await follower.agree()
            async with anyio.create_task_group() as group:
                group.start_soon(_stop_when_lost, lease, group.cancel_scope)
                async with anyio.create_task_group() as following:
                    for follower, end in zip(followers, ends, strict=True):
                        following.start_soon(follower.run, end)
                done = True
                group.cancel_scope.cancel()
        if patience.is_spent:
            raise ArchiveError("another archiver of this run is active: let it, or stop it first")
        return done

    def _followers(self) -> tuple[Follower, Follower]:
        subjects, screenshots = self.subjects, self.folder.screenshots
        followers: list[Follower] = []
        build = partial(
            Follower,
            bus=self.bus,
            folder=self.folder,
            config=self.config,
            report=lambda: self.progress(self._archived(followers)),
            bulkhead=self.bulkhead,
            clock=self.clock,
            wall_clock=self.wall_clock,
        )
        chains_s, results_s = self.bus_config.episodes_max_age_s or math.inf, self.bus_config.results_max_age_s or math.inf
        episodes = build(
            stream=subjects.trajectories,
            subject_filter=subjects.everything("trajectory"),
            parts=self.folder.trajectories,
            keeper=EpisodeKeeper(self.bus, subjects, screenshots),
            warn_age_s=_WARN_SHARE * min(chains_s, results_s),
        )
        judgements = build(
            stream=subjects.judged,
            subject_filter=subjects.judgements(None),
            parts=self.folder.judgements,
            keeper=JudgementKeeper(),
            warn_age_s=_WARN_SHARE * results_s,
        )
        followers += [episodes, judgements]
        return episodes, judgements

    def _archived(self, followers: "list[Follower] | tuple[Follower, ...]") -> Archived:
        episodes, judgements = followers
        return Archived(
            num_episodes=episodes.num_rows,
            num_judgements=judgements.num_rows,
            num_parts=episodes.num_parts + judgements.num_parts,
            num_gaps=episodes.num_gaps + judgements.num_gaps,
            screenshot_bytes=episodes.keeper.screenshot_bytes,
            num_waiting=episodes.num_waiting + judgements.num_waiting,
        )


async def _stop_when_lost(lease: Lease, scope: anyio.CancelScope) -> None:
    await lease.wait_lost()
    scope.cancel()
