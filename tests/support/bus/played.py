"""Episodes on a bus, played as browser, policy and judge would; light enough for tests that need no model."""

from collections.abc import Callable

import msgspec

from bus import chain
from bus.ports import Bus
from bus.subjects import Subjects
from schemas.messages import Outcome, Task, Trajectory
from tests.builders import WORKER, judgement, observation, step_request
from tests.contract.backends import SUBJECTS


async def play(
    bus: Bus,
    task: Task,
    *,
    subjects: Subjects = SUBJECTS,
    num_steps: int = 1,
    outcome: Outcome = Outcome.DONE,
    answer: str = "",
    reward: float | None = 1.0,
    store: bool = True,
    in_prompt: Callable[[int], tuple[int, ...]] = lambda step: (step,),
) -> Trajectory:
    """An episode whose screenshot k is `screenshot k`; with `store` off, only the trajectory that it would have."""
    owner: chain.EpisodeChain | None = None
    if store:
        await chain.admit(bus, subjects, task)
        taken = await chain.EpisodeChain.take(bus, subjects, task, WORKER)
        assert isinstance(taken, chain.EpisodeChain)
        owner = taken
        for step in range(num_steps):
            seen = await owner.observe(observation(task, step, data=b"screenshot %d" % step))
            request = msgspec.structs.replace(step_request(task, step), screenshots=in_prompt(step))
            owner.answered(await chain.answer(bus, subjects, seen, request))
    trajectory = Trajectory(
        task=task,
        attempt=1,
        outcome=outcome,
        num_observations=num_steps,
        num_steps=num_steps,
        answer=answer,
        environment_reward=reward,
        worker=WORKER,
    )
    if owner is not None:
        await owner.finish(trajectory)
        await chain.publish_trajectory(bus, subjects, trajectory)
    return trajectory


async def judge(bus: Bus, trajectory: Trajectory, reward: float | None = 1.0) -> None:
    given = judgement(trajectory, reward)
    await bus.append(SUBJECTS.judged, SUBJECTS.judgement(given.split, given.rubric, given.episode), given)
