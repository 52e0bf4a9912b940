"""Episodes on a bus, played as browser, policy and judge would; light enough for tests that need no model."""

from bus import chain
from bus.ports import Bus
from schemas.messages import Judgement, Outcome, RecordRef, Task, Trajectory, Verdict
from tests.builders import WORKER, observation, step_request
from tests.contract.backends import SUBJECTS


async def play(
    bus: Bus,
    task: Task,
    *,
    num_steps: int = 1,
    outcome: Outcome = Outcome.DONE,
    reward: float | None = 1.0,
    store: bool = True,
) -> Trajectory:
    """An episode whose picture k is `picture k`; with `store` off, only the trajectory that it would have."""
    owner: chain.EpisodeChain | None = None
    refs: list[RecordRef] = []
    if store:
        await chain.admit(bus, SUBJECTS, task)
        taken = await chain.EpisodeChain.take(bus, SUBJECTS, task, WORKER)
        assert isinstance(taken, chain.EpisodeChain)
        owner = taken
        for step in range(num_steps):
            seen = await owner.observe(observation(task, step, data=b"picture %d" % step))
            owner.answered(await chain.answer(bus, SUBJECTS, seen, step_request(task, step)))
    else:
        refs = [RecordRef(shard=0, seq=step + 1) for step in range(num_steps)]
    trajectory = Trajectory(
        task=task,
        attempt=1,
        outcome=outcome,
        observations=tuple(owner.observations if owner else refs),
        steps=tuple(owner.steps if owner else refs),
        environment_reward=reward,
        worker=WORKER,
    )
    if owner is not None:
        await owner.finish(trajectory)
        await chain.publish_trajectory(bus, SUBJECTS, trajectory)
    return trajectory


async def judge(bus: Bus, trajectory: Trajectory, reward: float | None = 1.0) -> None:
    verdict = Verdict.EXCLUDED if reward is None else Verdict.SUCCESS if reward > 0 else Verdict.FAILURE
    judgement = Judgement(
        episode=trajectory.episode,
        group=trajectory.task.group,
        split=trajectory.task.split,
        rubric="environment",
        verdict=verdict,
        reward=reward,
        trajectory=trajectory,
    )
    subject = SUBJECTS.judgement(judgement.split, judgement.rubric, judgement.episode)
    await bus.append(SUBJECTS.judged, subject, judgement)
