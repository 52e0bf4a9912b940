"""Small, complete messages for tests: every builder takes only what the test is about."""

from bus.evidence import Evidence
from bus.memory import MemoryBus
from bus.subjects import Subjects
from judges.episode import JudgedEpisode
from schemas.ids import EpisodeId, GroupId, PolicyVersion, RunName, TaskId, WorkerId
from schemas.messages import (
    Action,
    ActionKind,
    Checkpoint,
    Judgement,
    Observation,
    Outcome,
    Screenshot,
    Split,
    StepRequest,
    Task,
    Trajectory,
    Verdict,
    VersionSpan,
)

RUN = RunName("test")
WORKER = WorkerId("worker-1")
RUBRIC = "environment_v1"
"""Of `judgement`."""


def task(name: str = "t1", *, split: Split = Split.TRAIN, index: int = 0, max_steps: int = 3) -> Task:
    group = GroupId(f"{split.value}-r0000-{name}")
    return Task(
        run=RUN,
        episode=EpisodeId(f"{group}-m0"),
        group=group,
        task=TaskId(name),
        split=split,
        index=index,
        policy_version=PolicyVersion(0),
        instruction="click the button",
        website="demo:click_button?seed=1",
        max_steps=max_steps,
    )


def observation(of: Task, step: int = 0, *, attempt: int = 1, data: bytes = b"jpeg") -> Observation:
    return Observation(
        episode=of.episode,
        attempt=attempt,
        step=step,
        screenshot=Screenshot(data=data, media_type="image/jpeg", width=160, height=210),
        url="http://site/",
        title="page",
    )


def step_request(of: Task, step: int = 0, *, attempt: int = 1, worker: WorkerId = WORKER, version: int = 0) -> StepRequest:
    return StepRequest(
        episode=of.episode,
        attempt=attempt,
        step=step,
        action=Action(kind=ActionKind.CLICK, point=(500.0, 500.0)),
        parsed=True,
        response="click",
        prompt_tokens=(1, 2, 3),
        completion_tokens=(4, 5),
        logprobs=(-0.5, -0.25),
        versions=(VersionSpan(start=0, end=2, version=PolicyVersion(version)),),
        worker=worker,
    )


def trajectory(
    of: Task,
    *,
    outcome: Outcome = Outcome.DONE,
    reward: float | None = 1.0,
    num_observations: int | None = None,
    num_steps: int = 0,
    attempt: int = 1,
) -> Trajectory:
    return Trajectory(
        task=of,
        attempt=attempt,
        outcome=outcome,
        environment_reward=reward,
        num_observations=num_steps if num_observations is None else num_observations,
        num_steps=num_steps,
        worker=WORKER,
        versions=(PolicyVersion(0),) * num_steps,
    )


def judgement(of: Trajectory, reward: float | None = 1.0, *, rubric: str = RUBRIC) -> Judgement:
    """Without a reward, the episode is excluded."""
    return Judgement(
        episode=of.episode,
        group=of.task.group,
        split=of.task.split,
        rubric=rubric,
        verdict=Verdict.EXCLUDED if reward is None else Verdict.SUCCESS if reward > 0 else Verdict.FAILURE,
        reward=reward,
        trajectory=of,
    )


def judged_episode(of: Trajectory) -> JudgedEpisode:
    """Before a judge, with an empty chain."""
    subjects = Subjects(of.task.run)
    return JudgedEpisode(of, Evidence(MemoryBus(subjects), subjects))


def checkpoint(version: int, **metrics: float) -> Checkpoint:
    """Announced without files."""
    return Checkpoint(
        run=RUN,
        version=PolicyVersion(version),
        uri="file:///c",
        files=(),
        parent=None,
        trainer_step=0,
        judged_seq=0,
        metrics=metrics,
    )
