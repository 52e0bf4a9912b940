"""One finished episode as the pages show it: decoded step by step, screenshots named and left out. Pure."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from agents.describing import describe_all
from bus.codec import decode
from ops.archive.episodes import StoredEpisode
from ops.web.index import Row
from ops.web.store import Fetched
from ops.web.token_text import TokenTexts
from schemas.errors import ArchiveDamaged, MessageCorrupt
from schemas.messages import (
    Action,
    Element,
    JudgeCall,
    Judgement,
    NetworkRecord,
    Observation,
    StepRequest,
    Trajectory,
    VersionSpan,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenshotLink:
    url: str
    """Names the screenshot's content, so what stands there never changes."""
    sha256: str
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What the policy was shown."""

    screenshot: ScreenshotLink | None
    url: str
    title: str
    elements: tuple[Element, ...]
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the policy said."""

    action: Action
    words: str
    parsed: bool
    response: str
    thought: str
    num_prompt_tokens: int
    tokens: tuple[int, ...]
    token_texts: tuple[str, ...]
    """Empty: there is no tokenizer here."""
    logprobs: tuple[float, ...]
    versions: tuple[VersionSpan, ...]
    screenshots: tuple[int, ...]
    worker: str
    temperature: float
    finish_reason: str
    queued_s: float
    generated_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What the page did, as the next observation tells."""

    effect: str
    error: str
    hit: str
    changes: tuple[str, ...]
    same_screenshot: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is None was not kept, or never was."""

    step: int
    page: Page | None
    answer: Answer | None
    effect: Effect | None
    policy_s: float | None
    """Between the records of observation and answer."""
    page_s: float | None
    """Between those of the answer and the next observation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruled:
    judgement: Judgement
    calls: tuple[JudgeCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    trajectory: Trajectory
    steps: tuple[Step, ...]
    earlier_attempts: tuple[int, ...]
    """Those of workers that lost the episode."""
    ruled: tuple[Ruled, ...]
    keeps_calls: bool
    siblings: tuple[Row, ...]
    """Every episode of its task, itself too."""
    problems: tuple[str, ...]
    rubric: str
    """The one that counts."""


def detail_of(
    fetched: Fetched,
    *,
    texts: TokenTexts,
    calls: dict[str, Sequence[JudgeCall]],
    keeps_calls: bool,
    siblings: Sequence[Row],
    rubric: str,
) -> Detail:
    episode = fetched.episode
    problems = list(fetched.problems)
    chain = Chain.of(episode, problems)
    trajectory = episode.trajectory
    if chain.num_missing and not fetched.problems:
        problems.append(_aged_out(chain, trajectory))
    return Detail(
        trajectory=trajectory,
        steps=tuple(_step(chain, number, texts) for number in range(chain.num_steps)),
        earlier_attempts=chain.earlier_attempts,
        ruled=tuple(
            Ruled(judgement=judgement, calls=tuple(calls.get(judgement.rubric, ())))
            for judgement in judgements_of(episode, problems)
        ),
        keeps_calls=keeps_calls,
        siblings=tuple(siblings),
        problems=tuple(problems),
        rubric=rubric,
    )


def judgements_of(episode: StoredEpisode, problems: list[str]) -> list[Judgement]:
    """Those that this version can read; a sentence for each other one."""
    found = []
    for stored in episode.judgements:
        try:
            found.append(stored.message)
        except (ArchiveDamaged, MessageCorrupt) as error:
            problems.append(f"The judgement under {stored.rubric} cannot be shown: {error}.")
    return found


@dataclass(frozen=True, slots=True)
class Chain:
    """The decoded records of the attempt that ended the episode, by step."""

    observations: dict[int, tuple[Observation, float]]
    """Each with its time, unix seconds."""
    answers: dict[int, tuple[StepRequest, float]]
    trajectory: Trajectory
    earlier_attempts: tuple[int, ...]

    @classmethod
    def of(cls, episode: StoredEpisode, problems: list[str]) -> "Chain":
        """Adds a sentence to `problems` for every record that this version cannot read."""
        observations: dict[int, tuple[Observation, float]] = {}
        answers: dict[int, tuple[StepRequest, float]] = {}
        last = episode.trajectory.attempt
        attempts: set[int] = set()
        for record in episode.records:
            attempt = record.subject_suffix.partition(".")[0]
            if not attempt.isdecimal():
                continue
            attempts.add(int(attempt))
            if int(attempt) != last:
                continue
            try:
                message = decode(record.data)
            except MessageCorrupt as error:
                problems.append(f"Record {record.subject_suffix} cannot be shown: {error}.")
                continue
            match message:
                case Observation():
                    observations[message.step] = (message, record.time_s)
                case StepRequest():
                    answers[message.step] = (message, record.time_s)
        return cls(observations, answers, episode.trajectory, tuple(sorted(attempts - {last})))

    @property
    def num_steps(self) -> int:
        """The page that the last action led to is a step without an answer."""
        known = max((*self.observations, *self.answers), default=-1) + 1
        return max(known, self.trajectory.num_observations, self.trajectory.num_steps)

    @property
    def num_missing(self) -> int:
        wanted = self.trajectory.num_observations + self.trajectory.num_steps
        return max(0, wanted - len(self.observations) - len(self.answers))


def seen_at(episode: StoredEpisode, step: int) -> Observation | None:
    """One observation of the attempt that ended the episode, without decoding the others. Raises `MessageCorrupt`."""
    suffix = f"{episode.trajectory.attempt}.obs.{step}"
    message = next((decode(record.data) for record in episode.records if record.subject_suffix == suffix), None)
    return message if isinstance(message, Observation) else None


def traffic_of(episode: StoredEpisode) -> NetworkRecord | None:
    """What the pages of the attempt that ended the episode sent and got, where it was recorded. Raises `MessageCorrupt`."""
    suffix = f"{episode.trajectory.attempt}.net.0"
    message = next((decode(record.data) for record in episode.records if record.subject_suffix == suffix), None)
    return message if isinstance(message, NetworkRecord) else None


def screenshot_digest(observation: Observation) -> str:
    return hashlib.sha256(observation.screenshot.data).hexdigest()


def _aged_out(chain: Chain, trajectory: Trajectory) -> str:
    wanted = trajectory.num_observations + trajectory.num_steps
    return (
        f"{chain.num_missing} of the {wanted} records of this episode are no longer kept: they aged out of the run's streams "
        "(bus_config.episodes_max_age_s). An archive that was written before that holds them."
    )


def _step(chain: Chain, number: int, texts: TokenTexts) -> Step:
    seen, answered = chain.observations.get(number), chain.answers.get(number)
    following = chain.observations.get(number + 1)
    return Step(
        step=number,
        page=_page(seen[0]) if seen else None,
        answer=_answer(answered[0], texts) if answered else None,
        effect=_effect(following[0]) if answered and following else None,
        policy_s=answered[1] - seen[1] if seen and answered else None,
        page_s=following[1] - answered[1] if answered and following else None,
    )


def _page(seen: Observation) -> Page:
    screenshot, digest = seen.screenshot, screenshot_digest(seen)
    return Page(
        screenshot=ScreenshotLink(
            url=f"/api/screenshots/{digest}/{seen.episode}/{seen.step}",
            sha256=digest,
            width=screenshot.width,
            height=screenshot.height,
        )
        if screenshot.data
        else None,
        url=seen.url,
        title=seen.title,
        elements=seen.elements,
        errors=seen.page_errors,
    )


def _answer(step: StepRequest, texts: TokenTexts) -> Answer:
    return Answer(
        action=step.action,
        words=describe_all(step.actions),
        parsed=step.parsed,
        response=step.response,
        thought=step.thought,
        num_prompt_tokens=len(step.prompt_tokens),
        tokens=step.completion_tokens,
        token_texts=texts.of(step.completion_tokens),
        logprobs=step.logprobs,
        versions=step.versions,
        screenshots=step.screenshots,
        worker=step.worker,
        temperature=step.temperature,
        finish_reason=step.finish_reason,
        queued_s=step.queued_s,
        generated_s=step.generated_s,
    )


def _effect(following: Observation) -> Effect:
    return Effect(
        effect=following.effect.value,
        error=following.error,
        hit=following.hit,
        changes=following.changes,
        same_screenshot=following.same_screenshot,
    )
