"""The warm start: the tiny model imitates the oracle's demonstrations until it hits about as often as it is asked to.

It reads the demonstrations from the bus like any trainer and runs as a process of its own,
`python -m ops.quickstart.warm_start`.
Success is measured on demonstrations that are kept out of training; the figure that counts, on held-out pages through the
whole system, is taken later by the first evaluation round.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from agents.parsing import parse_response
from agents.tokens import PromptTokenizer
from bus.chain import read
from bus.ports import Bus
from bus.presence import Status, presence
from bus.subjects import Subjects
from ops.config.loading import load_config
from ops.processes.interruptible import run
from ops.quickstart.recipe import WarmStart
from ops.roles.deepspeed_trainer import engine_settings
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.logs import log_path, role_logs
from schemas.config import Config
from schemas.errors import TrainerError
from schemas.ids import WorkerId
from schemas.lora_config import LoraConfig
from schemas.messages import Judgement, Observation, RecordRef, Role, Split
from trainer.engine.training_engine import TrainEngine, open_engine
from trainer.episodes.episode_steps import StepRules, StepStore
from trainer.episodes.sample_builder import SampleBuilder
from trainer.imitation import imitate
from trainer.model.model_folder import suppressed_tokens
from trainer.model.pixel_scale import PixelScale, pixel_scale
from trainer.model.sampling import sample_completions
from trainer.samples import Sample
from trainer.scores import is_success
from trainer.versions.checkpoints import TrainerState, write_checkpoint

_log = structlog.get_logger()
_WORKER = WorkerId("warm-start")
_GRID = 1000


@dataclass(frozen=True)
class Target:
    """What a kept-out demonstration is scored by."""

    box: tuple[int, int, int, int]
    size: tuple[int, int]
    """Width and height of the screenshot, pixels."""

    def hit(self, point: tuple[float, float]) -> bool:
        x, y = (value * side / _GRID for value, side in zip(point, self.size, strict=True))
        left, top, width, height = self.box
        return left <= x < left + width and top <= y < top + height


async def warm_start(folder: RunFolder, config: Config, settings: WarmStart) -> None:
    """Reads the demonstrations, trains, and writes the model folder that becomes version 0."""
    subjects = subjects_of(config)
    async with (
        join(folder, config, role=Role.TRAINER.value, name=_WORKER) as bus,
        presence(bus, subjects, Role.TRAINER, _WORKER) as status,
    ):
        status.state = "loading"
        base = Path(config.policy_config.base_model)
        builder = await anyio.to_thread.run_sync(lambda: SampleBuilder(base, cutoff_len=config.algorithm_config.cutoff_len))
        samples, targets = await _demonstrations(bus, subjects, config.bus_config.trained_rubric, builder)
        if len(samples) <= settings.num_kept_out:
            raise TrainerError(f"{len(samples)} demonstrations are too few: {settings.num_kept_out} are kept for measuring")
        status.state = "training"
        await anyio.to_thread.run_sync(lambda: _train(folder, config, settings, samples, targets, status))


async def _demonstrations(
    bus: Bus, subjects: Subjects, rubric: str, builder: SampleBuilder
) -> tuple[list[Sample], list[Target]]:
    """All successful demonstrations, in the order of their tasks, so that a seed gives one result."""
    store = StepStore(
        bus, subjects, builder, cache_bytes=2**30, rules=StepRules(unparsed=False, unchanged=True, unsampled=True)
    )
    records = await bus.history(subjects.judged, subjects.judgements_by(rubric, Split.TRAIN))
    judgements = [record.message for record in records if isinstance(record.message, Judgement)]
    samples: list[Sample] = []
    targets: list[Target] = []
    for judgement in sorted(filter(is_success, judgements), key=lambda judgement: judgement.trajectory.task.index):
        steps = await store.episode(judgement.trajectory)
        for sample, ref in zip(await store.samples(steps.usable), judgement.trajectory.observations, strict=False):
            samples.append(sample)
            targets.append(await _target(bus, subjects, ref))
    return samples, targets


async def _target(bus: Bus, subjects: Subjects, ref: RecordRef) -> Target:
    record = await read(bus, subjects, ref)
    observation = record.message if record else None
    if not isinstance(observation, Observation) or observation.oracle is None:
        raise TrainerError(f"observation {ref.step} of {ref.episode}, a demonstration, does not say where the oracle clicked")
    return Target(observation.oracle, (observation.screenshot.width, observation.screenshot.height))


def _train(
    folder: RunFolder,
    config: Config,
    settings: WarmStart,
    samples: Sequence[Sample],
    targets: Sequence[Target],
    status: Status,
) -> None:
    base = Path(config.policy_config.base_model)
    examiner = _Examiner(base, samples[: settings.num_kept_out], targets[: settings.num_kept_out], config)
    # What comes out is a base for others: a whole model.
    whole = replace(config, trainer_config=replace(config.trainer_config, lora=LoraConfig()))
    with open_engine(base, settings=engine_settings(whole)) as engine:
        updates = imitate(engine, samples[settings.num_kept_out :], num_epochs=10_000, seed=config.trainer_config.seed)
        for num_updates, result in enumerate(updates, start=1):
            status.metrics.update(updates=num_updates, loss=result.loss)
            if num_updates % settings.updates_between:
                continue
            success = examiner.success(engine, num_updates)
            status.metrics.update(success=success)
            _log.info("warm_start_measured", updates=num_updates, loss=round(result.loss, 4), success=success)
            if success >= settings.target_success:
                break
            if num_updates >= settings.max_updates:
                _log.warning("warm_start_below_target", success=success, target=settings.target_success)
                break
        _write(folder, base, engine)


def _write(folder: RunFolder, base: Path, engine: TrainEngine) -> None:
    """An ordinary model folder, put in place whole."""
    state = TrainerState(version=0, num_trajectories=0, num_updates=0, replay=())
    written, _ = write_checkpoint(folder.path / "warm", base=base, engine=engine.state(), state=state)
    shutil.rmtree(written / "trainer")  # version 0 has nothing to resume
    written.replace(folder.path / "warm" / "model")


class _Examiner:
    """Scores the present weights on kept-out demonstrations."""

    def __init__(self, base: Path, samples: Sequence[Sample], targets: Sequence[Target], config: Config) -> None:
        self._samples = samples
        self._targets = targets
        self._scale: PixelScale = pixel_scale(base)
        self._suppressed = suppressed_tokens(base)
        self._tokenizer = PromptTokenizer(base)
        self._max_new_tokens = config.policy_config.max_new_tokens

    def success(self, engine: TrainEngine, seed: int) -> float:
        answers = sample_completions(
            engine.model,
            self._samples,
            scale=self._scale,
            suppressed=self._suppressed,
            stop_tokens=[self._tokenizer.end_of_turn],
            max_new_tokens=self._max_new_tokens,
            seed=seed,
        )
        points = [parse_response(self._tokenizer.decode(answer)).action.point for answer in answers]
        hits = sum(point is not None and target.hit(point) for point, target in zip(points, self._targets, strict=True))
        return hits / len(self._targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--config", type=Path, required=True)
    options = parser.parse_args()
    folder = RunFolder(options.run_dir.resolve())
    config = load_config(options.config)

    async def body() -> int:
        with role_logs(log_path(folder.logs, "trainer", _WORKER), run=config.bus_config.run, role="trainer", worker=_WORKER):
            await warm_start(folder, config, WarmStart())
        return 0

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
