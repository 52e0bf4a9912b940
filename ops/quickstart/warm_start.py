"""The warm start: the tiny model imitates the oracle's demonstrations until it does about as well as it is asked to.

It reads the demonstrations from the bus like any trainer and runs as a process of its own,
`python -m ops.quickstart.warm_start`. Success is measured on demonstrations that are kept out of training; the figure that
counts, on held-out pages through the whole system, is taken later by the first evaluation round.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from agents.action_space import ActionSpace
from bus.chain import read
from bus.ports import Bus
from bus.presence import Status, presence
from bus.subjects import Subjects
from ops.config.loading import load_config
from ops.processes.interruptible import run
from ops.quickstart.cooling import Cooling
from ops.quickstart.examination import Demonstration, Examiner, box_of
from ops.quickstart.practice import Practice
from ops.quickstart.recipe import FAMILIES, OBSERVE, WarmStart, family_named
from ops.roles.deepspeed_trainer import engine_settings
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.logs import log_path, role_logs
from schemas.config import Config
from schemas.errors import TrainerError
from schemas.ids import WorkerId
from schemas.lora_config import LoraConfig
from schemas.messages import Judgement, Observation, RecordRef, Role, Split
from trainer.augmentations import opened_augmentation
from trainer.engine.training_engine import TrainEngine, open_engine
from trainer.episodes.episode_steps import StepRules, StepStore
from trainer.episodes.sample_builder import SampleBuilder
from trainer.imitation import imitate
from trainer.scores import is_success
from trainer.versions.checkpoints import TrainerState, write_checkpoint

_log = structlog.get_logger()
_WORKER = WorkerId("warm-start")


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
        space = ActionSpace.of(config.context_config)
        shown = await _demonstrations(bus, subjects, config.bus_config.trained_rubric, builder, space)
        if len(shown) <= settings.num_kept_out:
            raise TrainerError(f"{len(shown)} demonstrations are too few: {settings.num_kept_out} are kept for measuring")
        status.state = "training"
        await anyio.to_thread.run_sync(lambda: _train(folder, config, settings, shown, status))


async def _demonstrations(
    bus: Bus, subjects: Subjects, rubric: str, builder: SampleBuilder, space: ActionSpace
) -> list[Demonstration]:
    """All successful ones whose every step can be trained on, in the order of their tasks, so that a seed gives one result."""
    store = StepStore(
        bus, subjects, builder, cache_bytes=2**30, rules=StepRules(unparsed=False, unchanged=True, unsampled=True)
    )
    records = await bus.history(subjects.judged, subjects.judgements_by(rubric, Split.TRAIN))
    judgements = [record.message for record in records if isinstance(record.message, Judgement)]
    shown: list[Demonstration] = []
    for judgement in sorted(filter(is_success, judgements), key=lambda judgement: judgement.trajectory.task.index):
        trajectory = judgement.trajectory
        samples = await store.samples((await store.episode(trajectory)).usable)
        if len(samples) == len(trajectory.steps):
            seen = [await _observation(bus, subjects, ref) for ref in trajectory.observations[: len(samples)]]
            boxes = tuple(box_of(observation, space) for observation in seen)
            shown.append(Demonstration(trajectory.task.subdomain, tuple(samples), boxes))
    return shown


async def _observation(bus: Bus, subjects: Subjects, ref: RecordRef) -> Observation:
    record = await read(bus, subjects, ref)
    if record is None or not isinstance(record.message, Observation):
        raise TrainerError(f"observation {ref.step} of {ref.episode}, a demonstration, is gone")
    return record.message


def _train(folder: RunFolder, config: Config, settings: WarmStart, shown: Sequence[Demonstration], status: Status) -> None:
    base = Path(config.policy_config.base_model)
    kept_out, trained = shown[: settings.num_kept_out], shown[settings.num_kept_out :]
    examiner = Examiner(base, kept_out, config)
    cooling = Cooling(settings)
    practice = Practice(trained, seed=config.trainer_config.seed)
    vary = opened_augmentation(settings.augmentation, base)
    # What comes out is a base for others: a whole model.
    whole = replace(config, trainer_config=replace(config.trainer_config, lora=LoraConfig()))
    with open_engine(base, settings=engine_settings(whole)) as engine:
        order = practice.order(engine.step_size)
        updates = imitate(engine, practice.samples, order=order, seed=config.trainer_config.seed, vary=vary)
        for num_updates, result in enumerate(updates, start=1):
            status.metrics.update(updates=num_updates, loss=result.loss)
            if num_updates % settings.updates_between == 0 or num_updates == cooling.ends_at:
                pages = examiner.success(engine)
                practice.look(pages)
                success = settings.success(pages)
                status.metrics.update(success=success)
                _log.info("warm_start_measured", updates=num_updates, loss=round(result.loss, 4), success=success, pages=pages)
                cooling.look(num_updates, success)
            if num_updates == cooling.ends_at:
                break
            engine.rate_factor = cooling.rate_factor(num_updates)
        if not cooling.begun:
            _log.warning("warm_start_below_target", success=success, target=settings.target_success)
        _write(folder, base, engine)


def _write(folder: RunFolder, base: Path, engine: TrainEngine) -> None:
    """An ordinary model folder, put in place whole."""
    state = TrainerState(version=0, num_trajectories=0, num_updates=0, replay=())
    written, _ = write_checkpoint(folder.path / "warm", base=base, engine=engine.files(), state=state)
    shutil.rmtree(written / "trainer")  # version 0 has nothing to resume
    written.replace(folder.path / "warm" / "model")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--family", choices=FAMILIES, required=True)
    parser.add_argument("--observe", choices=OBSERVE, required=True)
    options = parser.parse_args()
    folder = RunFolder(options.run_dir.resolve())
    config = load_config(options.config)

    async def body() -> int:
        with role_logs(log_path(folder.logs, "trainer", _WORKER), run=config.bus_config.run, role="trainer", worker=_WORKER):
            await warm_start(folder, config, family_named(options.family, options.observe).warm_start)
        return 0

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
