"""The trainer's own loop around an engine that records what it is given: random episodes, without torch."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from bus import chain
from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from ops.simulation.training import Counters, SimulatedBuilder, SimulatedTrainEngine, read_counters
from schemas.algorithm_config import AlgorithmConfig
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.feeder_config import FeederConfig
from schemas.ids import PolicyVersion
from schemas.log_config import LogConfig
from schemas.messages import (
    Action,
    ActionKind,
    Observation,
    Outcome,
    Role,
    Screenshot,
    StepRequest,
    Task,
    Trajectory,
    VersionSpan,
)
from schemas.objective_config import ObjectiveConfig
from schemas.policy_config import PolicyConfig
from schemas.simulation_config import SimulationConfig
from schemas.trainer_config import TrainerConfig
from tests.builders import WORKER
from tests.support.training.trainer_world import SUBJECTS
from trainer.items import Item
from trainer.loop import Trainer
from trainer.ports import StepResult
from trainer.samples import Sample
from trainer.tracking.log import open_tracking
from trainer.truncation import Truncation

CUT_OFF = 0.5
ACTION = Action(kind=ActionKind.WAIT)
ONE_EPOCH = AlgorithmConfig(num_train_epochs=1)
UNCUT = PolicyConfig(top_k=0, top_p=1.0)
DEFAULTS = TrainerConfig()


class Killed(BaseException):
    """Stands for kill -9 at one moment: nothing of the trainer's own runs after it."""


@dataclass
class Recorder:
    """Optimizer steps by their number: one that a killed trainer had made is made again, and must be the same."""

    steps: dict[int, list[Item]] = field(default_factory=dict)
    critic: list[Item] = field(default_factory=list)
    rate_factors: dict[int, float] = field(default_factory=dict)
    """Of every step."""
    kills: set[int] = field(default_factory=set)
    """Steps in which the trainer dies, once each."""
    returns: bool = False
    """Training may return to an earlier step, and go on from there otherwise."""

    @contextmanager
    def open(self, folder: Path, resume: Path | None, num_updates: int) -> Iterator["RecordingEngine"]:
        del folder
        counters = replace(read_counters(resume), num_updates=num_updates) if resume else Counters(num_updates)
        if self.returns:
            self.steps = {number: items for number, items in self.steps.items() if number < counters.num_updates}
        yield RecordingEngine(SimulationConfig(train_latency_ms=0.0), counters, step_size=3, recorder=self)

    @property
    def items(self) -> list[Item]:
        """Those with a gradient."""
        return [item for _, items in sorted(self.steps.items()) for item in items if item.targets.weights.any()]


@dataclass
class RecordingEngine(SimulatedTrainEngine):
    recorder: Recorder = field(default_factory=Recorder)

    def train(self, items: Sequence[Item]) -> StepResult:
        number = self.num_updates
        self.recorder.rate_factors[number] = self.rate_factor
        if number in self.recorder.kills:
            self.recorder.kills.discard(number)
            raise Killed
        before = self.recorder.steps.setdefault(number, list(items))
        assert [described(item) for item in before] == [described(item) for item in items]
        return super().train(items)

    def completion_logprobs(self, samples: Sequence[Sample], truncation: Truncation | None = None) -> list[np.ndarray]:
        """What the sampler said, which is 0.5 more than over the whole vocabulary where it cut its distribution off."""
        cut_off = 0.0 if truncation is None else CUT_OFF
        return [sample.logprobs - CUT_OFF + cut_off for sample in samples]

    def train_critic(self, items: Sequence[Item]) -> StepResult:
        self.recorder.critic.extend(items)
        return super().train_critic(items)

    def values(self, samples: Sequence[Sample]) -> list[np.ndarray]:
        return [np.full(sample.num_completion, 0.25, dtype=np.float32) for sample in samples]


def described(item: Item) -> tuple[object, ...]:
    """All that an engine is given, to compare by value."""
    sample, targets = item.sample, item.targets
    return (
        sample.ref,
        sample.tokens.tolist(),
        sample.num_prompt,
        sample.logprobs.tolist(),
        [screenshot.raw.tobytes() for screenshot in sample.screenshots],
        targets.weights.tolist(),
        targets.advantages.tolist(),
        targets.behaviour.tolist(),
        targets.proximal.tolist(),
    )


async def train(
    bus: MemoryBus,
    root: Path,
    recorder: Recorder,
    objective: ObjectiveConfig,
    *,
    num_iterations: int,
    batch: int,
    algorithm: AlgorithmConfig = ONE_EPOCH,
    num_stored: int = 0,
    policy: PolicyConfig = UNCUT,
    feeder: FeederConfig | None = None,
    config: TrainerConfig = DEFAULTS,
    status: Status | None = None,
) -> None:
    """Until so many versions are published; offline when episodes are stored. `feeder`: of a run that has one."""
    base = root / "base"
    base.mkdir(parents=True, exist_ok=True)
    (base / "config.json").write_text("{}")
    async with open_tracking(root, bus=bus, subjects=SUBJECTS, log=LogConfig()) as tracking:
        trainer = Trainer(
            WorkerContext(bus, SUBJECTS, status or Status(Role.TRAINER, WORKER)),
            uneven(
                algorithm_config=algorithm,
                objective_config=objective,
                trainer_config=config,
                feeder_config=feeder
                or FeederConfig(
                    mode="offline" if num_stored else "async",
                    num_iterations=num_iterations,
                    max_staleness=1,
                    num_stored=num_stored,
                ),
                env_config=EnvConfig(train_tasks_rollout_size=batch),
                policy_config=policy,
            ),
            base=base,
            checkpoints=root / "checkpoints",
            open_engine=recorder.open,
            open_builder=lambda _: SimulatedBuilder(),
            tracking=tracking,
        )
        await trainer.run()


def uneven(**parts: object) -> Config:
    """A configuration whose groups need not fit its batches, as they do not where some were left out."""
    config = Config()
    for name, value in parts.items():
        object.__setattr__(config, name, value)
    return config


async def play_random(
    bus: MemoryBus, task: Task, draw: random.Random, *, version: int = 0, parse_rate: float = 0.8
) -> Trajectory:
    """An episode of random steps: tokens, log-probabilities, screenshots and how many of them stand in the prompt."""
    await chain.admit(bus, SUBJECTS, task)
    owner = await chain.EpisodeChain.take(bus, SUBJECTS, task, WORKER)
    assert isinstance(owner, chain.EpisodeChain)
    num_unparsed = 0
    for step in range(draw.randint(1, 3)):
        seen = await owner.observe(_observation(task, step, draw))
        request = _answer(task, step, draw, version, parse_rate)
        num_unparsed += not request.parsed
        owner.answered(await chain.answer(bus, SUBJECTS, seen, request))
    trajectory = Trajectory(
        task=task,
        attempt=1,
        outcome=Outcome.DONE,
        num_observations=owner.num_observations,
        num_steps=owner.num_steps,
        versions=(PolicyVersion(version),) * owner.num_steps,
        num_unparsed=num_unparsed,
    )
    await owner.finish(trajectory)
    return trajectory


def _observation(task: Task, step: int, draw: random.Random) -> Observation:
    shot = Screenshot(data=draw.randbytes(16), media_type="image/jpeg", width=160, height=210)
    return Observation(
        episode=task.episode,
        attempt=1,
        step=step,
        screenshot=shot,
        url="http://site/",
        title="page",
        same_screenshot=step > 0 and draw.random() < 0.2,
    )


def _answer(task: Task, step: int, draw: random.Random, version: int, parse_rate: float) -> StepRequest:
    length = draw.randint(1, 5)
    return StepRequest(
        episode=task.episode,
        attempt=1,
        step=step,
        action=ACTION,
        parsed=draw.random() < parse_rate,
        response="",
        prompt_tokens=tuple(draw.choices(range(1000), k=draw.randint(1, 6))),
        completion_tokens=tuple(draw.choices(range(1000), k=length)),
        logprobs=tuple(-draw.random() for _ in range(length)),
        versions=(VersionSpan(start=0, end=length, version=PolicyVersion(version)),),
        screenshots=tuple(range(draw.randint(0, step), step + 1)),
    )
