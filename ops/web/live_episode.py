"""One episode while it runs: its task, and the newest observation and answer on its chain, read as they stand now."""

from dataclasses import dataclass

from agents.describing import describe_all
from bus.ports import Bus
from bus.stored import newest
from bus.subjects import Subjects
from ops.monitor.chains import chain_state
from ops.web.detail import Page, ScreenshotLink, screenshot_digest
from schemas.errors import RecordGone
from schemas.ids import EpisodeId
from schemas.messages import Action, Observation, Screenshot, StepRequest, Task, Trajectory

_MOST_TEXT = 4_000
"""Characters of what a model said: the page of an ended episode has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAnswer:
    action: Action
    words: str
    parsed: bool
    thought: str
    response: str
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStep:
    step: int
    page: Page | None
    answer: LiveAnswer | None
    """None: the policy is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTask:
    task: str
    instruction: str
    website: str
    split: str
    difficulty: int
    max_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveEpisode:
    episode: EpisodeId
    task: LiveTask
    attempt: int
    """0: no browser worker has taken it."""
    now: LiveStep | None
    """The newest step; None: nothing was seen yet."""
    before: LiveAnswer | None
    """What led to a page that is not answered yet."""
    outcome: str
    """Empty: it runs."""


async def live_episode(bus: Bus, names: Subjects, episode: EpisodeId, *, attempt: int) -> LiveEpisode:
    """`attempt`: as it is known; 0: not at all.

    Raises:
        RecordGone: nothing of it is kept.
        BusUnavailable: no server answers.
    """
    stream = names.episodes(names.shard(episode))
    begun = await newest(bus, stream, names.chain_task(episode))
    if begun is None or not isinstance(begun.message, Task):
        raise RecordGone(f"Nothing of episode {episode} is kept: it was never admitted here, or has aged out.")
    attempt = attempt or chain_state(await bus.subjects(stream, names.chain(episode))).attempt
    seen = answered = None
    if attempt:
        # The answer first: a page that comes in between is behind it, so an answer never stands beside an older page.
        answered = await _newest(bus, names, episode, attempt, "act")
        seen = await _newest(bus, names, episode, attempt, "obs")
    ended = await newest(bus, stream, names.chain_done(episode))
    return _shown(
        begun.message,
        attempt,
        seen if isinstance(seen, Observation) else None,
        answered if isinstance(answered, StepRequest) else None,
        ended.message if ended is not None and isinstance(ended.message, Trajectory) else None,
    )


async def screenshot_at(bus: Bus, names: Subjects, episode: EpisodeId, attempt: int, step: int, digest: str) -> Screenshot:
    """Raises `RecordGone` when the screenshot there is not the one that is meant."""
    record = await newest(bus, names.episodes(names.shard(episode)), names.chain_record(episode, attempt, "obs", step))
    seen = record.message if record is not None else None
    if not isinstance(seen, Observation) or screenshot_digest(seen) != digest:
        raise RecordGone("There is no such screenshot: it is of another run, or no longer kept.")
    return seen.screenshot


async def _newest(bus: Bus, names: Subjects, episode: EpisodeId, attempt: int, kind: str) -> object:
    record = await newest(bus, names.episodes(names.shard(episode)), names.chain_kind(episode, attempt, kind))
    return record.message if record is not None else None


def _shown(
    task: Task, attempt: int, seen: Observation | None, answered: StepRequest | None, ended: Trajectory | None
) -> LiveEpisode:
    said = _answer(answered) if answered else None
    is_answered = seen is not None and answered is not None and answered.step == seen.step
    return LiveEpisode(
        episode=task.episode,
        task=LiveTask(
            task=task.task,
            instruction=task.instruction[:_MOST_TEXT],
            website=task.website,
            split=task.split.value,
            difficulty=task.difficulty,
            max_steps=task.max_steps,
        ),
        attempt=attempt,
        now=LiveStep(step=seen.step, page=_page(seen), answer=said if is_answered else None) if seen else None,
        before=None if is_answered else said,
        outcome=ended.outcome.value if ended else "",
    )


def _page(seen: Observation) -> Page:
    screenshot, digest = seen.screenshot, screenshot_digest(seen)
    url = f"/api/live/screenshots/{digest}/{seen.episode}/{seen.attempt}/{seen.step}"
    link = ScreenshotLink(url=url, sha256=digest, width=screenshot.width, height=screenshot.height)
    return Page(
        screenshot=link if screenshot.data else None,
        url=seen.url,
        title=seen.title,
        elements=seen.elements,
        errors=seen.page_errors,
    )


def _answer(step: StepRequest) -> LiveAnswer:
    return LiveAnswer(
        action=step.action,
        words=describe_all(step.actions),
        parsed=step.parsed,
        thought=step.thought[:_MOST_TEXT],
        response=step.response[:_MOST_TEXT],
        worker=step.worker,
    )
