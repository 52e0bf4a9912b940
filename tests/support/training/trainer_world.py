"""What trainer tests share: engine settings, played episodes on a bus, and a plain transformers model as the oracle."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from msgspec import structs
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForImageTextToText

from bus import chain
from bus.ports import Bus
from bus.subjects import Subjects
from schemas.algorithm_config import AlgorithmConfig
from schemas.ids import EpisodeId, GroupId, PolicyVersion, TaskId, WorkerId, episode_id
from schemas.messages import (
    Action,
    ActionKind,
    Observation,
    Outcome,
    RecordRef,
    Screenshot,
    Split,
    StepRequest,
    Task,
    Trajectory,
    VersionSpan,
)
from schemas.trainer_config import TrainerConfig
from tests import builders
from tests.support.agents.tiny_models import screenshot
from trainer.engine.deepspeed_config import read_deepspeed_config
from trainer.engine.settings import EngineSettings

SUBJECTS = Subjects(builders.RUN)
CONFIGS = Path(__file__).parents[3] / "ops/config/deepspeed"
ALGORITHM = AlgorithmConfig(
    per_device_train_batch_size=4,
    gradient_accumulation_steps=1,
    learning_rate=1e-3,
    adam_beta2=0.95,
    warmup_steps=2,
    num_train_epochs=2,
)


def settings(stage: int = 1, algorithm: AlgorithmConfig = ALGORITHM) -> EngineSettings:
    deepspeed = read_deepspeed_config(CONFIGS / f"ds_config_cpu_zero{stage}.json")
    return EngineSettings(deepspeed=deepspeed, algorithm=algorithm, trainer=TrainerConfig(torch_threads=1))


def narrow(of: EngineSettings, precision: str = "bf16", **settings: float) -> EngineSettings:
    """The same in bf16 or fp16."""
    narrowed = {**of.deepspeed.settings, precision: {"enabled": True, **settings}}
    return replace(of, deepspeed=replace(of.deepspeed, settings=narrowed))


class PlainModel:
    """The model as anyone would run it with transformers: whole screenshots, all logits, nothing of the trainer's own code."""

    def __init__(self, folder: Path) -> None:
        self.model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
        self.images = AutoImageProcessor.from_pretrained(folder)
        self.config = self.model.config

    def prompt(self, num_screenshots: int = 1) -> list[int]:
        """A prompt with 12 image tokens for each screenshot of 160 x 210."""
        config = self.config
        shown = [config.vision_start_token_id, *[config.image_token_id] * 12, config.vision_end_token_id]
        return [1, 20, 21, *shown * num_screenshots, 22, 23]

    @torch.no_grad()
    def logprobs(
        self, prompt: Sequence[int], completion: Sequence[int], screenshots: Sequence[bytes], suppressed: Sequence[int]
    ) -> np.ndarray:
        tokens = torch.tensor([[*prompt, *completion]])
        inputs = self.images(images=[Image.open(io.BytesIO(data)) for data in screenshots], return_tensors="pt")
        logits = self.model(input_ids=tokens, mm_token_type_ids=(tokens == self.config.image_token_id).int(), **inputs).logits[
            0, len(prompt) - 1 : -1
        ]
        logits[:, list(suppressed)] = float("-inf")
        chosen = logits.log_softmax(-1).gather(-1, torch.tensor(completion)[:, None])[:, 0]
        return np.asarray(chosen)


def completion(seed: int, length: int = 6) -> tuple[int, ...]:
    """Ordinary tokens, then the end of the turn."""
    return (*np.random.default_rng(seed).integers(20, 200, length).tolist(), 2)


def train_task(index: int, *, demonstrate: bool = False) -> Task:
    group = GroupId(f"train-r0000-t{index}")
    return replace_task(builders.task(), group=group, index=index, demonstrate=demonstrate)


def member_task(group: int, member: int, *, greedy: bool = False) -> Task:
    """Of a group that plays task `group`."""
    name = GroupId(f"train-r0000-t{group}")
    return structs.replace(
        train_task(100 * group + member), group=name, episode=episode_id(name, member), task=TaskId(f"t{group}"), greedy=greedy
    )


def replace_task(task: Task, *, group: GroupId, index: int, demonstrate: bool) -> Task:
    return Task(
        run=task.run,
        episode=EpisodeId(f"{group}-m0"),
        group=group,
        task=TaskId(f"t{index}"),
        split=Split.TRAIN,
        index=index,
        policy_version=PolicyVersion(0),
        instruction=task.instruction,
        website=task.website,
        max_steps=3,
        demonstrate=demonstrate,
    )


async def play(
    bus: Bus,
    task: Task,
    *,
    plain: PlainModel | None = None,
    suppressed: Sequence[int] = (),
    prompt: Sequence[int] = (1, 20, 21, 22),
    num_steps: int = 1,
    version: int = 0,
    same_screenshot: bool = False,
    parsed: bool = True,
    reward: float | None = None,
) -> Trajectory:
    """Plays an episode on the chain as browser and policy would: one screenshot per step; log-probabilities from `plain`."""
    await chain.admit(bus, SUBJECTS, task)
    owner = await chain.EpisodeChain.take(bus, SUBJECTS, task, WorkerId("browser"))
    assert isinstance(owner, chain.EpisodeChain)
    for step in range(num_steps):
        shot = screenshot(task.index * 10 + step)
        seen = await owner.observe(_observation(task, step, shot, same_screenshot and step > 0))
        answer = completion(task.index * 10 + step)
        logprobs = tuple(plain.logprobs(prompt, answer, [shot.data], suppressed).tolist()) if plain else ()
        request = StepRequest(
            episode=task.episode,
            attempt=1,
            step=step,
            action=Action(kind=ActionKind.WAIT),
            parsed=parsed,
            response="",
            prompt_tokens=tuple(prompt),
            completion_tokens=answer,
            logprobs=logprobs,
            versions=(VersionSpan(start=0, end=len(answer), version=PolicyVersion(version)),),
            screenshots=(step,) if plain else (),
        )
        owner.answered(await chain.answer(bus, SUBJECTS, seen, request))
    trajectory = Trajectory(
        task=task,
        attempt=1,
        outcome=Outcome.DONE,
        environment_reward=reward,
        num_observations=owner.num_observations,
        num_steps=owner.num_steps,
        versions=(PolicyVersion(version),) * num_steps,
        num_unparsed=0 if parsed else num_steps,
    )
    await owner.finish(trajectory)
    await chain.publish_trajectory(bus, SUBJECTS, trajectory)
    return trajectory


def _observation(task: Task, step: int, shot: Screenshot, same_screenshot: bool) -> Observation:
    return Observation(
        episode=task.episode,
        attempt=1,
        step=step,
        screenshot=shot,
        url="http://site/",
        title="page",
        same_screenshot=same_screenshot,
    )


async def judge(bus: Bus, trajectory: Trajectory, reward: float | None = 1.0, *, rubric: str = builders.RUBRIC) -> int:
    given = builders.judgement(trajectory, reward, rubric=rubric)
    return await bus.append(SUBJECTS.judged, SUBJECTS.judgement(given.split, given.rubric, given.episode), given)


def small(algorithm: AlgorithmConfig = ALGORITHM, **changes: object) -> AlgorithmConfig:
    return replace(algorithm, **changes)  # type: ignore[arg-type]


def ref(step: int) -> RecordRef:
    """Names an answer of some long episode."""
    return RecordRef(EpisodeId("long"), attempt=1, kind="act", step=step)
