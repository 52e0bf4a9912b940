"""One finished episode as a row: small enough to hold very many of them. Pure."""

from dataclasses import dataclass

from schemas.ids import EpisodeId, GroupId
from schemas.messages import Judgement, Trajectory
from schemas.site import site_of

_MOST_TEXT = 1000
"""Characters of a text that are kept to be shown and searched."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What one rubric said."""

    rubric: str
    verdict: str
    reward: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    episode: EpisodeId
    group: GroupId
    task: str
    instruction: str
    website: str
    site: str
    """Host, or a suite's name."""
    split: str
    domain: str
    difficulty: int
    attempt: int
    outcome: str
    answer: str
    error: str
    url: str
    """Of the page that the episode ended on, where it is known."""
    environment_reward: float | None
    num_steps: int
    num_unparsed: int
    first_version: int
    """Oldest policy version that took part."""
    last_version: int
    worker: str
    ended_at: float
    """Unix seconds."""
    seconds: float
    """From the first page to the end."""
    rulings: tuple[Ruling, ...] = ()

    def ruling(self, rubric: str) -> Ruling | None:
        for ruling in self.rulings:
            if ruling.rubric == rubric:
                return ruling
        return None


def summary_of(trajectory: Trajectory) -> Summary:
    task = trajectory.task
    # As in the consumer API: an episode without steps is of the version that it was admitted under.
    versions = trajectory.versions or (task.policy_version,)
    return Summary(
        episode=task.episode,
        group=task.group,
        task=task.task,
        instruction=task.instruction[:_MOST_TEXT],
        website=task.website[:_MOST_TEXT],
        site=site_of(task.website[:_MOST_TEXT]),
        split=task.split.value,
        domain=task.domain,
        difficulty=task.difficulty,
        attempt=trajectory.attempt,
        outcome=trajectory.outcome.value,
        answer=trajectory.answer[:_MOST_TEXT],
        error=(trajectory.error or trajectory.navigation_error)[:_MOST_TEXT],
        url=trajectory.final_state.url[:_MOST_TEXT] if trajectory.final_state else "",
        environment_reward=trajectory.environment_reward,
        num_steps=trajectory.num_steps,
        num_unparsed=trajectory.num_unparsed,
        first_version=min(versions),
        last_version=max(versions),
        worker=trajectory.worker,
        ended_at=trajectory.ended_at,
        seconds=trajectory.timings.total_s,
    )


def ruling_of(judgement: Judgement) -> Ruling:
    return Ruling(judgement.rubric, judgement.verdict.value, judgement.reward)
