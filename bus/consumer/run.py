"""A run from outside: its streams, typed, filtered, from anywhere, live or to their present end."""

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, TypedDict, TypeVar, Unpack

from anyio.abc import TaskGroup

from bus.consumer.position import DurablePlace
from bus.consumer.selection import (
    EpisodeSelection,
    RewardRange,
    choice,
    choices,
    of_judgements,
    of_trajectories,
    version_range,
)
from bus.consumer.source import Source
from bus.consumer.start import BEGINNING, After, Start
from bus.consumer.stream import ReadingWay, Stream
from bus.evidence import Evidence
from bus.ports import Bus
from bus.subjects import Subjects
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId, RunName, subject_token
from schemas.messages import (
    AnyMessage,
    Checkpoint,
    Heartbeat,
    JudgeCall,
    Judgement,
    Observation,
    Outcome,
    Split,
    StepRequest,
    Trajectory,
    Verdict,
)

M = TypeVar("M", bound=AnyMessage)


class Reading(TypedDict, total=False):
    """How a stream is read; the same for all of them."""

    start: Start
    """Where to begin; `BEGINNING` by default. A durable reader uses it the first time only."""
    follow: bool
    """Wait for new records (the default), or end with the newest there is now."""
    durable: str | None
    """A name under which the place is kept on the server, so that the next process goes on there; at least once."""
    screenshots: bool
    """Fetch the screenshots of every item before it is given, so that `Item.screenshots()` answers at once."""


class Run:
    """Use `bus.connect`. Reads only; a durable reader writes its own place."""

    def __init__(self, bus: Bus, subjects: Subjects, group: TaskGroup, *, has_ended: bool = False) -> None:
        """`has_ended`: nothing comes any more, so that no stream waits for it."""
        self._bus = bus
        self._subjects = subjects
        self._group = group
        self._has_ended = has_ended
        self._streams: list[Stream[Any]] = []

    @property
    def name(self) -> RunName:
        return self._subjects.run

    @property
    def bus(self) -> Bus:
        """What lies below, for what this class does not offer."""
        return self._bus

    @property
    def subjects(self) -> Subjects:
        return self._subjects

    def trajectories(
        self,
        *,
        split: Split | str | None = None,
        outcome: Outcome | str | Iterable[Outcome | str] = (),
        episode: str | None = None,
        task: str | None = None,
        website: str | None = None,
        version: int | range | None = None,
        min_reward: float | None = None,
        max_reward: float | None = None,
        **reading: Unpack[Reading],
    ) -> Stream[Trajectory]:
        """Episodes as they end. `website` may hold `*`, `version` is that of the policy at every step, rewards are the page's.

        Raises:
            ConfigurationError: a value that does not exist.
        """
        selection = EpisodeSelection(
            outcomes=choices(Outcome, outcome), website=website, task=task, versions=version_range(version)
        )
        accepts = of_trajectories(selection, RewardRange(low=min_reward, high=max_reward))
        subject_filter = f"{self.name}.trajectory.{_split_token(split)}.{_episode_token(episode)}"
        return self._stream(Trajectory, [Source(self._subjects.trajectories, subject_filter)], accepts, **reading)

    def judgements(  # noqa: PLR0913 (filters of the public API, all of them keywords)
        self,
        *,
        split: Split | str | None = None,
        verdict: Verdict | str | Iterable[Verdict | str] = (),
        rubric: str | None = None,
        outcome: Outcome | str | Iterable[Outcome | str] = (),
        episode: str | None = None,
        task: str | None = None,
        website: str | None = None,
        version: int | range | None = None,
        min_reward: float | None = None,
        max_reward: float | None = None,
        **reading: Unpack[Reading],
    ) -> Stream[Judgement]:
        """Judged episodes; each holds its trajectory. Arguments as of `trajectories`; rewards are the judge's."""
        selection = EpisodeSelection(
            outcomes=choices(Outcome, outcome), website=website, task=task, versions=version_range(version)
        )
        rewards = RewardRange(low=min_reward, high=max_reward)
        accepts = of_judgements(selection, rewards, choices(Verdict, verdict))
        rubric_token = "*" if rubric is None else subject_token(rubric, what="rubric")
        subject_filter = f"{self.name}.judged.{_split_token(split)}.{rubric_token}.{_episode_token(episode)}"
        return self._stream(Judgement, [Source(self._subjects.judged, subject_filter)], accepts, **reading)

    def calls(
        self,
        *,
        episode: str | None = None,
        rubric: str | None = None,
        stage: str | None = None,
        **reading: Unpack[Reading],
    ) -> Stream[JudgeCall]:
        """What judges' models answered, also where it was no verdict."""
        rubric_token = "*" if rubric is None else subject_token(rubric, what="rubric")
        subject_filter = f"{self.name}.call.{rubric_token}.{_episode_token(episode)}.*.*"
        source = Source(self._subjects.calls, subject_filter)
        return self._stream(JudgeCall, [source], lambda call: stage in (None, call.stage), **reading)

    def checkpoints(self, *, version: int | range | None = None, **reading: Unpack[Reading]) -> Stream[Checkpoint]:
        """Weights as they are published."""
        versions = version_range(version)
        source = Source(self._subjects.checkpoints, self._subjects.everything("checkpoint"))
        return self._stream(Checkpoint, [source], lambda found: versions is None or found.version in versions, **reading)

    def observations(
        self, *, episode: str | None = None, url: str | None = None, **reading: Unpack[Reading]
    ) -> Stream[Observation]:
        """What browsers see, screenshots included: a lot. Shards are merged, so order holds within an episode only.

        `url` is exact or a pattern with `*`.
        """
        return self._stream(Observation, list(self._chain_sources(episode, "obs")), _at(url), **reading)

    def steps(
        self, *, episode: str | None = None, version: int | range | None = None, **reading: Unpack[Reading]
    ) -> Stream[StepRequest]:
        """The policy's answers with their tokens. Shards are merged, so order holds within an episode only."""
        versions = version_range(version)

        def accepts(step: StepRequest) -> bool:
            return versions is None or all(span.version in versions for span in step.versions)

        return self._stream(StepRequest, list(self._chain_sources(episode, "act")), accepts, **reading)

    def heartbeats(self, **reading: Unpack[Reading]) -> Stream[Heartbeat]:
        """Signs of life of the run's workers: the newest of each, then every new one."""
        source = Source(self._subjects.heartbeats, self._subjects.everything("heartbeat"))
        return self._stream(Heartbeat, [source], lambda _: True, **reading)

    async def aclose(self) -> None:
        """Closes every stream. `bus.connect` does it."""
        for stream in self._streams:
            await stream.aclose()

    def _stream(
        self, kind: type[M], sources: list[Source], accepts: Callable[[M], bool], **reading: Unpack[Reading]
    ) -> Stream[M]:
        start, durable = reading.get("start", BEGINNING), reading.get("durable")
        if isinstance(start, After) and len(sources) > 1:
            raise ConfigurationError(
                f"this run keeps its episodes in {len(sources)} streams, each with sequences of its own: "
                "write a time, a durable name, or one episode, in place of a sequence"
            )
        way = ReadingWay(
            start=start,
            follow=reading.get("follow", True) and not self._has_ended,
            screenshots=reading.get("screenshots", False),
            place=DurablePlace(self._bus, self._subjects, durable) if durable else None,
        )
        stream = Stream(self._group, Evidence(self._bus, self._subjects), sources, kind, accepts, way)
        self._streams = [*(open_ for open_ in self._streams if not open_.is_closed), stream]
        return stream

    def _chain_sources(self, episode: str | None, kind: str) -> Iterator[Source]:
        shards = range(self._subjects.num_shards) if episode is None else [self._subjects.shard(EpisodeId(episode))]
        for shard in shards:
            subject_filter = f"{self.name}.ep.{shard}.{_episode_token(episode)}.*.{kind}.*"
            yield Source(self._subjects.episodes(shard), subject_filter)


def _split_token(split: Split | str | None) -> str:
    return "*" if split is None else choice(Split, split).value


def _episode_token(episode: str | None) -> str:
    return "*" if episode is None else subject_token(episode, what="episode")


def _at(url: str | None) -> Callable[[Observation], bool]:
    return lambda seen: url is None or seen.url == url or fnmatchcase(seen.url, url)
