"""Selects the stored episodes that are exported, and decodes the last attempt of each, with its judgement."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from bus.codec import decode
from ops.archive.episodes import EpisodeSource, StoredEpisode, StoredJudgement
from schemas.errors import ConfigurationError, MessageCorrupt
from schemas.messages import ActionKind, Judgement, Observation, Split, StepRequest, Task, Trajectory, Verdict


@dataclass(frozen=True, slots=True)
class PlayedStep:
    """What was seen, and what was answered."""

    observation: Observation
    request: StepRequest
    changed_nothing: bool
    """The next screenshot is the same."""


@dataclass(frozen=True, slots=True)
class Played:
    """One episode to be exported."""

    trajectory: Trajectory
    judgement: Judgement | None
    steps: tuple[PlayedStep, ...]
    """Of the attempt that ended the episode; without those whose records aged out before they were archived."""
    last_seen: Observation | None
    """What the last action led to, where it was looked at."""

    @property
    def task(self) -> Task:
        return self.trajectory.task

    @property
    def is_success(self) -> bool:
        judgement = self.judgement
        return judgement is not None and judgement.verdict is Verdict.SUCCESS


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which episodes count, and by whose judgement."""

    split: Split | None = None
    min_reward: float | None = None
    """Episodes without a reward are left out then."""
    rubric: str | None = None
    """None: the only one that there is."""

    async def of(self, source: EpisodeSource) -> AsyncIterator[Played]:
        """Raises `ConfigurationError` when it is not clear which judgement counts, or, behind the last one, when there is none
        by the rubric that was chosen."""
        rubrics = set[str]()
        async for episode in source.episodes():
            rubrics.update(one.rubric for one in episode.judgements)
            if self.split in (None, episode.trajectory.task.split):
                judgement = self._judgement(episode)
                if self._is_worth_it(judgement):
                    yield played(episode, judgement)
        if self.rubric is not None and self.rubric not in rubrics:
            names = ", ".join(sorted(rubrics)) or "none"
            raise ConfigurationError(f"nothing is judged by {self.rubric} there: write --rubric with one of {names}")

    def _judgement(self, episode: StoredEpisode) -> Judgement | None:
        found: list[StoredJudgement] = [one for one in episode.judgements if self.rubric in (None, one.rubric)]
        if len(found) > 1:
            names = ", ".join(sorted(one.rubric for one in found))
            raise ConfigurationError(f"episode {episode.episode} was judged under {names}: choose one with --rubric")
        return found[0].message if found else None

    def _is_worth_it(self, judgement: Judgement | None) -> bool:
        if self.min_reward is None:
            return True
        return judgement is not None and judgement.reward is not None and judgement.reward >= self.min_reward


def played(episode: StoredEpisode, judgement: Judgement | None) -> Played:
    """Records of a version that this reader does not know are as good as absent."""
    observations: dict[int, Observation] = {}
    requests: dict[int, StepRequest] = {}
    prefix = f"{episode.trajectory.attempt}."
    for record in episode.records:
        if not record.subject_suffix.startswith(prefix):
            continue
        try:
            message = decode(record.data)
        except MessageCorrupt:
            continue
        match message:
            case Observation():
                observations[message.step] = message
            case StepRequest():
                requests[message.step] = message
    steps = tuple(
        PlayedStep(observations[step], request, _changed_nothing(request, observations.get(step + 1)))
        for step, request in sorted(requests.items())
        if step in observations
    )
    last_seen = observations.get(max(requests, default=-1) + 1)
    return Played(episode.trajectory, judgement, steps, last_seen)


def _changed_nothing(request: StepRequest, following: Observation | None) -> bool:
    """An answer has ended the episode, whatever the page shows behind it."""
    is_answer = request.actions[-1].kind is ActionKind.ANSWER
    return not is_answer and following is not None and following.same_screenshot
