"""What the viewer's tests look at: a group that parts, an episode full of markup, one whose chain aged out, and its server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import msgspec

from bus import chain
from bus.ports import Bus
from bus.subjects import Subjects
from ops.labels.label_file import LabelFile
from ops.web.access import Access
from ops.web.index import EpisodeIndex
from ops.web.serving import Listening, serve
from ops.web.store import Shown, TrajectoryStore
from ops.web.token_text import TokenTexts
from ops.web.viewer import Viewer, following
from ops.web.viewer_site import viewer_application
from schemas.config import Config
from schemas.ids import EpisodeId, GroupId, PolicyVersion, TaskId, WorkerId
from schemas.messages import (
    Action,
    ActionEffect,
    ActionKind,
    Element,
    JudgeCall,
    Judgement,
    Outcome,
    StageUsage,
    StageVerdict,
    Task,
    Timings,
    Trajectory,
    VersionSpan,
)
from tests import builders
from tests.deadlines import HANGS_S
from tests.support.runs import archive_world

RUBRIC = "environment_v1"
"""The one that a run trains on unless it is told otherwise."""
GROUP = GroupId("train-r0000-lamp")
LEFT, RIGHT = (EpisodeId(f"{GROUP}-m{member}") for member in (0, 1))
HOSTILE, GONE = EpisodeId("train-r0000-hostile-m0"), EpisodeId("train-r0000-gone-m0")
SCRIPT = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"
LINK = "javascript:window.pwned=1"
ACTIONS = (
    Action(kind=ActionKind.TYPE, point=(250.0, 500.0), text="brass lamp"),
    Action(kind=ActionKind.DRAG, point=(100.0, 100.0), end_point=(900.0, 900.0)),
    Action(kind=ActionKind.SCROLL, direction="up"),
    Action(kind=ActionKind.CLICK, element=7),
    Action(kind=ActionKind.ANSWER, text="it is brass"),
)


def task(episode: EpisodeId, *, group: str = "", name: str = "lamp", instruction: str = "Find the brass lamp") -> Task:
    return msgspec.structs.replace(
        builders.task(name, max_steps=9),
        episode=episode,
        group=GroupId(group or episode),
        task=TaskId(name),
        instruction=instruction,
        website="https://www.shop.example/lamps",
        difficulty=4,
        policy_version=PolicyVersion(5),
        reference_answer="brass",
    )


async def play(bus: Bus, subjects: Subjects, of: Task, actions: Sequence[Action], *, words: str = "", at: float) -> Trajectory:
    """An episode whose screenshots are all different; `words` are what page and policy say."""
    await chain.admit(bus, subjects, of)
    owner = await chain.EpisodeChain.take(bus, subjects, of, WorkerId("browser-9"))
    assert isinstance(owner, chain.EpisodeChain)
    for step, action in enumerate(actions):
        seen = msgspec.structs.replace(
            builders.observation(of, step),
            screenshot=archive_world.shot(step),
            url=words or f"https://shop.example/page/{step}",
            title=words or f"Lamps {step}",
            effect=ActionEffect.CHANGED if step else ActionEffect.NONE,
            hit=words or ("button “Search”" if step else ""),
            changes=(words or "another document was loaded",) if step else (),
            page_errors=(words or "console: no lamp",) if step else (),
            elements=(Element(id=7, tag="a", text=words or "a lamp", box=(2, 3, 8, 4)),),
        )
        answer = msgspec.structs.replace(
            builders.step_request(of, step),
            action=action,
            parsed=action.kind is not ActionKind.SCROLL,
            response=words or f"I will do step {step}.",
            completion_tokens=(72, 105, 33),
            logprobs=(-0.01, -0.9, -4.6),
            versions=(VersionSpan(0, 2, PolicyVersion(5)), VersionSpan(2, 3, PolicyVersion(6))),
            screenshots=tuple(range(step + 1)),
            worker=WorkerId("policy-3"),
            queued_s=0.05,
            generated_s=0.7,
        )
        owner.answered(await chain.answer(bus, subjects, await owner.observe(seen), answer))
    trajectory = Trajectory(
        task=of,
        attempt=1,
        outcome=Outcome.ANSWERED,
        num_observations=len(actions),
        num_steps=len(actions),
        answer=words or "it is brass",
        worker=WorkerId("browser-9"),
        versions=(PolicyVersion(5),) * len(actions),
        environment_reward=0.5,
        timings=Timings(reset_s=1.0, observe_s=0.5, policy_s=2.0, act_s=0.5, total_s=5.0),
        ended_at=at,
    )
    await owner.finish(trajectory)
    await chain.publish_trajectory(bus, subjects, trajectory)
    return trajectory


async def judge(bus: Bus, subjects: Subjects, of: Trajectory, reward: float, reasoning: str) -> None:
    passed = reward > 0
    given = msgspec.structs.replace(
        builders.judgement(of, reward, rubric=RUBRIC),
        stages=(
            StageVerdict(stage="keypoint", passed=True, reasoning="It saw the lamp.", evidence=(0, 1)),
            StageVerdict(stage="criterion_b", passed=passed, reasoning=reasoning, votes=(passed, passed, not passed)),
        ),
        step_rewards=(0.25,) * of.num_steps,
        usage=(StageUsage(stage="criterion_b", model="m-1", num_calls=3, prompt_tokens=900, completion_tokens=30),),
    )
    await bus.append(subjects.judged, subjects.judgement(given.split, RUBRIC, given.episode), given)


def call(of: Judgement | Trajectory, text: str) -> JudgeCall:
    return JudgeCall(
        episode=of.episode, rubric=RUBRIC, stage="criterion_b", question="q1", answer=0, model="m-1", text=text, accepted=True
    )


async def fill(bus: Bus, subjects: Subjects) -> None:
    """Four episodes on top of what `archive_world.fill` plays."""
    left = await play(bus, subjects, task(LEFT, group=GROUP), ACTIONS, at=2_000.0)
    right = await play(bus, subjects, task(RIGHT, group=GROUP), (*ACTIONS[:1], ACTIONS[3]), at=2_001.0)
    hostile = task(HOSTILE, name="hostile", instruction=SCRIPT)
    hostile = msgspec.structs.replace(hostile, website=LINK)
    markup = await play(
        bus, subjects, hostile, (Action(kind=ActionKind.TYPE, point=(1.0, 1.0), text=SCRIPT),), words=SCRIPT + LINK, at=2_002.0
    )
    gone = Trajectory(
        task=task(GONE, name="gone"), attempt=1, outcome=Outcome.STEP_LIMIT, num_observations=3, num_steps=2, ended_at=2_003.0
    )
    await chain.publish_trajectory(bus, subjects, gone)
    await judge(bus, subjects, left, 1.0, "The answer names the material.")
    await judge(bus, subjects, right, 0.0, "It never said what it is made of.")
    await judge(bus, subjects, markup, 0.0, SCRIPT)
    asked = call(left, "Yes: brass.")
    await bus.append(subjects.calls, subjects.call(RUBRIC, LEFT, asked.question, asked.answer), asked)


@asynccontextmanager
async def viewing(
    store: TrajectoryStore,
    *,
    kind: str = "run",
    access: Access | None = None,
    listening: Listening | None = None,
    labels: LabelFile | None = None,
) -> AsyncIterator[str]:
    """The address of a viewer that has read everything there was."""
    viewer = Viewer(Shown(store=store, config=Config(), kind=kind), EpisodeIndex(RUBRIC), TokenTexts())
    app = viewer_application(viewer, access or Access(), run="test", labels=labels)
    url: list[str] = []
    listens = anyio.Event()

    def ready(address: str) -> None:
        url.append(address)
        listens.set()

    async with following(viewer), anyio.create_task_group() as group:

        async def run() -> None:
            await serve(app, listening or Listening(port=0, exact=True), ready=ready, ending=viewer.end)

        group.start_soon(run)
        with anyio.fail_after(HANGS_S):
            await listens.wait()
            while viewer.index.reading:
                await viewer.index.wait_change(viewer.index.revision)
        yield url[0].rstrip("/")
        group.cancel_scope.cancel()
