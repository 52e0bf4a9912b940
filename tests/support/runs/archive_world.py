"""What archive tests share: a run with every kind of episode on a bus, and what its streams hold, to compare."""

import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
from PIL import Image

from bus import chain
from bus.ports import Bus
from bus.subjects import Subjects
from ops.archive.archiver import Archiver
from ops.archive.episodes import EpisodeSource, StoredEpisode, StoredJudgement
from ops.archive.folder import ArchiveFolder
from ops.config.loading import dump_config
from schemas.archive_config import ArchiveConfig
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.ids import EpisodeId, GroupId, PolicyVersion, RunName, TaskId, WorkerId
from schemas.messages import (
    Action,
    ActionEffect,
    ActionKind,
    Judgement,
    Observation,
    Outcome,
    RewardPart,
    Screenshot,
    Split,
    StageUsage,
    StageVerdict,
    StepRequest,
    Task,
    Trajectory,
    VersionSpan,
)
from tests import builders

BROWSER = WorkerId("browser")
RUBRICS = ("environment", "strict-2")


def task(index: int, *, run: RunName, split: Split = Split.TRAIN) -> Task:
    group = GroupId(f"{split.value}-r0000-t{index}")
    return Task(
        run=run,
        episode=EpisodeId(f"{group}-m0"),
        group=group,
        task=TaskId(f"t{index}"),
        split=split,
        index=index,
        policy_version=PolicyVersion(0),
        instruction=f"click button {index}, then say <image> “done”",
        website=f"demo:click_button?seed={index}",
        max_steps=5,
        domain="demo",
        difficulty=1 + index % 3,
    )


def shot(seed: int) -> Screenshot:
    """A small real screenshot; every third is a PNG."""
    png = seed % 3 == 0
    value = zlib.crc32(str(seed).encode())
    encoded = io.BytesIO()
    image = Image.new("RGB", (16, 12), (value & 255, value >> 8 & 255, value >> 16 & 255))
    image.save(encoded, "PNG" if png else "JPEG")
    return Screenshot(data=encoded.getvalue(), media_type="image/png" if png else "image/jpeg", width=16, height=12)


def observation(of: Task, attempt: int, step: int) -> Observation:
    # Steps 1 and 2 show the same screenshot: it is stored once.
    return Observation(
        episode=of.episode,
        attempt=attempt,
        step=step,
        screenshot=shot(of.index * 10 + min(step, 1)),
        url=f"http://site/{of.index}/{step}",
        title=f"page {step}",
        effect=ActionEffect.NONE if step == 0 else ActionEffect.UNCHANGED if step == 2 else ActionEffect.CHANGED,
        same_screenshot=step == 2,
    )


def answer(of: Task, attempt: int, step: int) -> StepRequest:
    return StepRequest(
        episode=of.episode,
        attempt=attempt,
        step=step,
        action=Action(kind=ActionKind.CLICK, point=(100.0 + step, 500.0)),
        parsed=True,
        response=f"Action: click {step} of {of.episode}",
        thought=f"click {step}",
        prompt_tokens=(1, 2, 3),
        completion_tokens=(4, 5, step),
        logprobs=(-0.5, -0.25, -0.125),
        versions=(VersionSpan(start=0, end=3, version=PolicyVersion(step)),),
        screenshots=tuple(range(step + 1)),
    )


async def attempt_steps(bus: Bus, subjects: Subjects, of: Task, attempt: int, *, num_steps: int) -> chain.EpisodeChain:
    owner = await chain.EpisodeChain.take(bus, subjects, of, BROWSER)
    assert isinstance(owner, chain.EpisodeChain)
    for step in range(num_steps):
        seen = await owner.observe(observation(of, attempt, step))
        owner.answered(await chain.answer(bus, subjects, seen, answer(of, attempt, step)))
    return owner


async def play(bus: Bus, subjects: Subjects, of: Task, *, num_steps: int, attempts: int = 1, ends: bool = True) -> Trajectory:
    """Plays an episode; only the last of its attempts comes to an end."""
    await chain.admit(bus, subjects, of)
    for attempt in range(1, attempts):
        await attempt_steps(bus, subjects, of, attempt, num_steps=1)
    owner = await attempt_steps(bus, subjects, of, attempts, num_steps=num_steps)
    if not ends:
        return await chain.cancel(bus, subjects, of, Outcome.CANCELLED, "enough", 1000.0 + of.index)
    await owner.observe(observation(of, attempts, num_steps))
    trajectory = Trajectory(
        task=of,
        attempt=attempts,
        outcome=Outcome.DONE,
        num_observations=num_steps + 1,
        num_steps=num_steps,
        answer=f"answer {of.index}",
        environment_reward=float(of.index % 2),
        versions=tuple(PolicyVersion(step) for step in range(num_steps)),
        ended_at=1000.0 + of.index,
    )
    await owner.finish(trajectory)
    return trajectory


def judgement(of: Trajectory, rubric: str = RUBRICS[0]) -> Judgement:
    reward = of.environment_reward
    passed = bool(reward)
    stage = StageVerdict(stage="outcome", passed=passed, reasoning="as “seen”", votes=(passed, True, passed), evidence=(0,))
    usage = StageUsage(
        stage="outcome", model="m-1", num_calls=3, num_failures=1, prompt_tokens=900, cached_tokens=300, cost=0.25
    )
    given = msgspec.structs.replace(builders.judgement(of, reward), rubric=rubric, stages=(stage,), usage=(usage,))
    if reward is None:
        return msgspec.structs.replace(given, blocked=True, error="blocked")
    parts = (RewardPart("outcome", reward), RewardPart("length", 0.0, (0.0,) * of.num_steps))
    return msgspec.structs.replace(given, parts=parts, step_rewards=(0.0,) * of.num_steps)


async def judge(bus: Bus, subjects: Subjects, given: Judgement) -> None:
    await bus.append(subjects.judged, subjects.judgement(given.split, given.rubric, given.episode), given)


async def fill(bus: Bus, subjects: Subjects, *, first: int = 0, num_episodes: int = 8) -> None:
    """Every kind of episode: taken over, failed, cancelled with and without steps, held out, under two rubrics, unjudged.

    Judgements are given in another order than episodes end.
    """
    ended: list[Trajectory] = []
    for index in range(first, first + num_episodes):
        split = Split.EVAL if index % 4 == 3 else Split.TRAIN
        of = task(index, run=subjects.run, split=split)
        match index % 8:
            case 1:
                trajectory = await play(bus, subjects, of, num_steps=3, attempts=3)
            case 2:
                trajectory = await play(bus, subjects, of, num_steps=2, ends=False)
            case 4:
                await chain.admit(bus, subjects, of)
                trajectory = await chain.cancel(bus, subjects, of, Outcome.FAILED, "no page", 1000.0 + index)
            case _:
                trajectory = await play(bus, subjects, of, num_steps=1 + index % 4)
        await chain.publish_trajectory(bus, subjects, trajectory)
        ended.append(trajectory)
    for trajectory in reversed(ended):
        if trajectory.task.index % 8 != 6:
            await judge(bus, subjects, judgement(trajectory))
    for trajectory in ended[::3]:
        await judge(bus, subjects, judgement(trajectory, RUBRICS[1]))


@dataclass
class Contents:
    """Everything that a source gives, without the times, which a server sets."""

    episodes: list[StoredEpisode] = field(default_factory=list)
    judgements: list[StoredJudgement] = field(default_factory=list)


async def contents(source: EpisodeSource) -> Contents:
    return Contents(
        [_timeless(episode) async for episode in source.episodes()],
        [replace(judgement, time_s=0.0) async for judgement in source.judgements()],
    )


def _timeless(episode: StoredEpisode) -> StoredEpisode:
    return replace(
        episode,
        trajectory_time_s=0.0,
        records=tuple(replace(record, time_s=0.0) for record in episode.records),
        judgements=tuple(replace(judgement, time_s=0.0) for judgement in episode.judgements),
    )


def archiver(bus: Bus, subjects: Subjects, folder: ArchiveFolder, *, episodes_per_part: int = 4) -> Archiver:
    return Archiver(
        bus=bus,
        subjects=subjects,
        folder=folder,
        config=ArchiveConfig(episodes_per_part=episodes_per_part),
        bus_config=BusConfig(run=subjects.run, num_shards=subjects.num_shards),
    )


async def archive(bus: Bus, subjects: Subjects, path: Path, *, episodes_per_part: int = 4) -> ArchiveFolder:
    folder = ArchiveFolder(path)
    with folder.writing(subjects.run, dump_config(Config())):
        await archiver(bus, subjects, folder, episodes_per_part=episodes_per_part).run(once=True)
    return folder


def files(folder: Path, *, leaving_out: Sequence[str] = ()) -> dict[str, bytes]:
    """Every file below a folder with its content."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in leaving_out
    }
