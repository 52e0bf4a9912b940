"""Reads sampled episodes from their chains, for people to look at."""

from collections.abc import Callable, Sequence
from functools import partial

import anyio.to_thread

from bus.evidence import Evidence
from bus.ports import Bus
from bus.subjects import Subjects
from schemas.errors import RecordGone
from schemas.messages import Judgement, Observation, StepRequest
from trainer.tracking import ShownEpisode, ShownStep

_MOST_STEPS = 40

ShowStep = Callable[[int, Observation, StepRequest], ShownStep]
"""Draws one step, numbered from 1."""


async def shown_episodes(bus: Bus, subjects: Subjects, chosen: Sequence[Judgement], show_step: ShowStep) -> list[ShownEpisode]:
    """In the order given; episodes whose chains have aged out are left out. Raises `BusUnavailable`."""
    evidence = Evidence(bus, subjects)
    found: list[ShownEpisode] = []
    for judgement in chosen:
        try:
            observations = await evidence.observations(judgement.trajectory)
            steps = await evidence.steps(judgement.trajectory)
        except RecordGone:
            continue
        pairs = list(zip(observations, steps, strict=False))[:_MOST_STEPS]
        found.append(await anyio.to_thread.run_sync(partial(_shown, judgement, pairs, show_step)))
    return found


def _shown(judgement: Judgement, pairs: Sequence[tuple[Observation, StepRequest]], show_step: ShowStep) -> ShownEpisode:
    trajectory = judgement.trajectory
    return ShownEpisode(
        episode=judgement.episode,
        instruction=trajectory.task.instruction,
        website=trajectory.task.website,
        difficulty=trajectory.task.difficulty,
        outcome=trajectory.outcome.value,
        verdict=judgement.verdict.value,
        reward=judgement.reward,
        reasoning=next((stage.reasoning for stage in reversed(judgement.stages) if stage.reasoning), judgement.error),
        versions=tuple(trajectory.versions),
        steps=tuple(show_step(number, seen, step) for number, (seen, step) in enumerate(pairs, 1)),
    )
