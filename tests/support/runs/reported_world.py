"""Many varied episodes, written as browsers, policies and judges write them: what reports are counted on."""

import random

import anyio
from msgspec.structs import replace

from bus import chain
from bus.ports import Bus
from bus.subjects import Subjects
from ops.archive.exports.played import PlayedStep
from schemas.ids import EpisodeId, GroupId, PolicyVersion, TaskId, WorkerId
from schemas.messages import (
    Action,
    ActionKind,
    Judgement,
    Outcome,
    Split,
    StageUsage,
    StageVerdict,
    StepRequest,
    Task,
    Timings,
    TokenUsage,
    Trajectory,
    Verdict,
    VersionSpan,
)
from tests import builders

RUBRIC, OTHER = "environment_v1", "strict_v2"
CLICK = Action(kind=ActionKind.CLICK, point=(1.0, 2.0))
_AT_ONCE = 64
_OUTCOMES = (
    *[Outcome.ANSWERED] * 5,
    *[Outcome.DONE] * 4,
    *[Outcome.STEP_LIMIT] * 3,
    Outcome.TIMED_OUT,
    Outcome.BLOCKED,
    Outcome.FAILED,
    Outcome.CANCELLED,
)
_DOMAINS = ("Shopping", "Travel", "News", "", "<script>alert(1)</script>")
_ERRORS = {
    Outcome.TIMED_OUT: "not over after 60 s",
    Outcome.FAILED: "page http://a.example/{index} crashed",
    Outcome.CANCELLED: "enough",
    Outcome.BLOCKED: "a CAPTCHA",
}


def task(index: int, subjects: Subjects) -> Task:
    draw = random.Random(f"task {index}")
    split = Split.EVAL if index % 5 == 4 else Split.TRAIN
    name = f"t{index % 300}"
    group = GroupId(f"{split.value}-r{index // 300:04d}-{name}")
    host = f"site{min(int(draw.expovariate(0.25)), 40)}.example.org"
    website = f"demo:click_button?seed={index}" if index % 11 == 0 else f"https://www.{host}/start"
    return replace(
        builders.task(name, split=split, index=index, max_steps=6),
        run=subjects.run,
        episode=EpisodeId(f"{group}-m0"),
        group=group,
        task=TaskId(name),
        policy_version=PolicyVersion(index // 100),
        domain=draw.choice(_DOMAINS),
        difficulty=draw.randrange(10),
        website=website,
        greedy=split is Split.TRAIN and index % 50 == 7,
        demonstrate=split is Split.TRAIN and index % 90 == 13,
    )


def answer(of: Task, step: int, draw: random.Random) -> StepRequest:
    action = Action(kind=ActionKind.CLICK, point=(float(draw.randrange(2)), 5.0))
    version = PolicyVersion(of.policy_version + step // 2)
    parsed = draw.random() > 0.15
    prompt, completion = tuple(range(draw.randrange(5, 30))), tuple(range(draw.randrange(1, 9)))
    return replace(
        builders.step_request(of, step),
        action=action,
        parsed=parsed,
        prompt_tokens=prompt,
        completion_tokens=completion,
        logprobs=(),
        versions=(VersionSpan(start=0, end=len(completion), version=version),),
        worker=WorkerId(f"policy-{step % 2}"),
        queued_s=draw.random() / 10,
        generated_s=draw.random(),
        usage=TokenUsage(prompt=1000 + step, completion=7) if of.index % 17 == 3 else None,
    )


def judgement(of: Trajectory, rubric: str, draw: random.Random) -> Judgement:
    if not of.outcome.finished:
        verdict = Verdict.EXCLUDED
    else:
        verdict = draw.choices((Verdict.SUCCESS, Verdict.FAILURE, Verdict.ERROR, Verdict.EXCLUDED), (50, 44, 4, 2))[0]
    success = verdict is Verdict.SUCCESS
    decided = success or verdict is Verdict.FAILURE
    usage = StageUsage(stage="criterion_a", model="m", num_calls=2, prompt_tokens=90, completion_tokens=9, cost=0.125)
    return replace(
        builders.judgement(of, None, rubric=rubric),
        verdict=verdict,
        reward=(0.75 if success else 0.25) if decided else None,
        stages=(StageVerdict(stage="criterion_a", passed=success, votes=(success, True)),) if decided else (),
        usage=(usage,) if decided else (),
        judged_s=draw.random(),
        judge=WorkerId(f"judge-{of.task.index % 3}"),
        error="" if decided else f"no verdict on {of.episode}",
        blocked=of.outcome is Outcome.BLOCKED or (verdict is Verdict.EXCLUDED and of.outcome.finished),
    )


async def play(bus: Bus, subjects: Subjects, index: int) -> None:
    of, draw = task(index, subjects), random.Random(f"play {index}")
    await chain.admit(bus, subjects, of)
    outcome = draw.choice(_OUTCOMES)
    if outcome is Outcome.CANCELLED:
        trajectory = await chain.cancel(bus, subjects, of, outcome, "enough", 5000.0 + index)
    else:
        owner = await chain.EpisodeChain.take(bus, subjects, of, WorkerId(f"browser-{index % 4}"))
        assert isinstance(owner, chain.EpisodeChain)
        answers = []
        for step in range(draw.randrange(0 if outcome is Outcome.FAILED else 1, 7)):
            url = f"http://p/{draw.randrange(3)}"
            seen = await owner.observe(replace(builders.observation(of, step), url=url, same_screenshot=draw.random() < 0.2))
            answers.append(answer(of, step, draw))
            owner.answered(await chain.answer(bus, subjects, seen, answers[-1]))
        seconds = [draw.random() for _ in range(4)]
        trajectory = replace(
            builders.trajectory(of, outcome=outcome, reward=None),
            num_observations=len(answers),
            num_steps=len(answers),
            num_unparsed=sum(not one.parsed for one in answers),
            versions=tuple(one.versions[0].version for one in answers),
            worker=WorkerId(f"browser-{index % 4}"),
            timings=Timings(
                reset_s=seconds[0], observe_s=seconds[1], policy_s=seconds[2], act_s=seconds[3], total_s=sum(seconds)
            ),
            error=_ERRORS.get(outcome, "").format(index=index),
            navigation_error="net::ERR" if draw.random() < 0.05 else "",
            ended_at=5000.0 + index,
        )
        await owner.finish(trajectory)
    await chain.publish_trajectory(bus, subjects, trajectory)
    for rubric, share in ((RUBRIC, 0.97), (OTHER, 0.4)):
        if draw.random() < share:
            given = judgement(trajectory, rubric, draw)
            await bus.append(subjects.judged, subjects.judgement(given.split, rubric, given.episode), given)


async def fill(bus: Bus, subjects: Subjects, num_episodes: int) -> None:
    """The same episodes every time, whatever the order in which they come to be written."""
    numbers = iter(range(num_episodes))

    async def play_some() -> None:
        for index in numbers:
            await play(bus, subjects, index)

    async with anyio.create_task_group() as group:
        for _ in range(min(_AT_ONCE, num_episodes)):
            group.start_soon(play_some)


def judged(of: Trajectory, verdict: Verdict, *, rubric: str = RUBRIC, **fields: object) -> Judgement:
    reward = {Verdict.SUCCESS: 1.0, Verdict.FAILURE: 0.0}.get(verdict)
    return replace(builders.judgement(of, reward, rubric=rubric), verdict=verdict, **fields)


def step(number: int, url: str, action: Action = CLICK, *, parsed: bool = True, changed_nothing: bool = False) -> PlayedStep:
    of = builders.task()
    return PlayedStep(
        replace(builders.observation(of, number), url=url),
        replace(builders.step_request(of, number), action=action, parsed=parsed, queued_s=0.5, generated_s=1.5),
        changed_nothing,
    )
