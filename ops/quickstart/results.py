"""Computes the result of a quickstart: metrics for programs, and one solved episode to look at."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path

from bus.chain import read
from bus.ports import Bus
from bus.subjects import Subjects
from ops.audit.promises import Findings
from ops.monitor.run_watch import RunState
from ops.pictures.frame import Frame, frame_of
from ops.pictures.strip import draw_strip
from ops.quickstart.overlap import Overlap
from ops.quickstart.page_results import PageResult
from schemas.ids import PolicyVersion
from schemas.messages import Judgement, Observation, RecordRef, Split, StepRequest, Trajectory, Verdict


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """One evaluation on the held-out pages."""

    version: int
    num_episodes: int
    """Training episodes judged before."""
    seconds: float
    """Since the roles were started."""
    success: float


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What a quickstart was asked to learn, and how."""

    seed: int
    family: str
    observe: str
    objective: str
    mode: str


@dataclass(frozen=True, kw_only=True)
class Timing:
    setup_s: float
    loop_s: float
    began_at: float
    """Of the loop, on the watch's clock."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The figures of `result.json`. Success is a share of the held-out pages that were scored, sampled at temperature 1."""

    seed: int
    objective: str
    mode: str
    family: str
    observe: str
    """As pixels or as marks."""
    warm_start_success: float
    final_success: float
    num_held_out: int
    setup_seconds: float
    """Model, task files, demonstrations and warm start."""
    loop_seconds: float
    """From starting the five roles, vLLM included, to the last evaluation."""
    parse_rate: float
    max_mismatch: float
    """Largest of all iterations: mean absolute difference of log-probabilities, nats."""
    num_mismatch_checks: int
    max_staleness: float
    """Largest of what was trained on, in versions."""
    num_versions: int
    num_tasks: int
    num_trajectories: int
    num_judgements: int
    num_duplicates: int
    num_unscored: int
    """Episodes that failed, were cancelled, or got no verdict."""
    num_shared_pages: int
    """Pages that were both trained on and held out; has to be 0."""
    num_alike_pages: int
    """Held-out pages that begin like one that was trained on: some kinds have few looks."""
    num_restarts: int
    episodes_by_worker: dict[str, int]
    """Episodes that each browser worker played to the end."""
    audit_holds: bool
    held_out: tuple["HeldOut", ...]
    """Every evaluation round."""
    pages: tuple[PageResult, ...]
    """Success by kind of page, first and last round."""

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")


def result(
    state: RunState,
    counts: Findings,
    lesson: Lesson,
    timing: Timing,
    *,
    last_version: PolicyVersion,
    num_restarts: int,
    overlap: Overlap,
    pages: tuple[PageResult, ...],
) -> Result:
    """Puts the figures together; all evaluation rounds must be over."""
    first, last = state.evaluations[PolicyVersion(0)], state.evaluations[last_version]
    return Result(
        **asdict(lesson),
        warm_start_success=first.success,
        final_success=last.success,
        num_held_out=last.num_scored,
        setup_seconds=round(timing.setup_s, 1),
        loop_seconds=round(timing.loop_s, 1),
        parse_rate=state.parse_rate or 0.0,
        max_mismatch=max(state.mismatches, default=float("nan")),
        num_mismatch_checks=len(state.mismatches),
        max_staleness=max(state.staleness, default=0.0),
        num_versions=len(state.versions),
        num_tasks=counts.num_tasks,
        num_trajectories=counts.num_trajectories,
        num_judgements=counts.num_judgements,
        num_duplicates=counts.num_duplicates,
        num_unscored=state.num_unscored,
        num_shared_pages=overlap.num_shared,
        num_alike_pages=overlap.num_alike,
        pages=pages,
        num_restarts=num_restarts,
        episodes_by_worker={str(worker): count for worker, count in state.num_played_by.items()},
        audit_holds=counts.holds,
        held_out=tuple(
            HeldOut(
                version=version,
                num_episodes=evaluation.at_episode,
                seconds=round(evaluation.began_at - timing.began_at, 1),
                success=evaluation.success,
            )
            for version, evaluation in sorted(state.evaluations.items())
        ),
    )


async def judgements_of(bus: Bus, subjects: Subjects, rubric: str, split: Split) -> list[Judgement]:
    """Each episode's once: what other rubrics say of it is another matter."""
    records = await bus.history(subjects.judged, subjects.judgements_by(rubric, split))
    return [record.message for record in records if isinstance(record.message, Judgement)]


def most_telling(judgements: Iterable[Judgement]) -> Trajectory | None:
    """Of the newest policy that solved an episode, the longest one on the kind of pages that it solves best.

    What takes several steps is worth looking at, and what takes many by chance is not.
    """
    solved: dict[tuple[PolicyVersion, str], list[Trajectory]] = defaultdict(list)
    numbers: Counter[tuple[PolicyVersion, str]] = Counter()
    for judgement in judgements:
        task = judgement.trajectory.task
        numbers[task.policy_version, task.subdomain] += 1
        if judgement.verdict is Verdict.SUCCESS:
            solved[task.policy_version, task.subdomain].append(judgement.trajectory)
    ranked = ((kind[0], len(each) / numbers[kind], told.num_steps, told) for kind, each in solved.items() for told in each)
    return max(ranked, key=lambda rank: rank[:3])[3] if solved else None


async def solved_episode_strip(bus: Bus, subjects: Subjects, judgements: Iterable[Judgement]) -> bytes | None:
    """The screenshots of an episode that was solved, with its clicks drawn in; None when none was."""
    told = most_telling(judgements)
    if told is None:
        return None
    frames: list[Frame] = []
    for ref, answer in zip_longest(told.observations, told.steps[: len(told.observations)]):
        seen = await _message(bus, subjects, ref)
        step = await _message(bus, subjects, answer) if answer is not None else None
        if isinstance(seen, Observation):
            frames.append(frame_of(seen, step if isinstance(step, StepRequest) else None))
    return draw_strip(frames, title=told.task.instruction) if frames else None


async def _message(bus: Bus, subjects: Subjects, ref: RecordRef) -> object:
    record = await read(bus, subjects, ref)
    return record.message if record else None
