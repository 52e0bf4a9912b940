"""The configuration of a run that is made by replaying another one: the source's own, with what has to differ."""

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path

from ops.config.loading import load_config
from ops.config.overrides import as_overrides
from ops.run.base_models import folder_here
from ops.run.folder import RunFolder
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.ids import RunName
from schemas.messages import Checkpoint

_UNKNOWN = -1
_RUBRICS = "bus_config.rubrics="


def copied_config(source: Path, folder: RunFolder, *, suffix: str, overrides: Sequence[str] = ()) -> Config:
    """The source's configuration for a run in `folder`, with a name of its own: both may share a server."""
    run = RunName(f"{load_config(source).bus_config.run}-{suffix}")
    own = as_overrides({"save_path": str(folder.path), "bus_config.run": run, "bus_config.guest_runs": []})
    return load_config(source, [*own, *overrides])


def offline_config(
    source: Path,
    folder: RunFolder,
    checkpoints: Sequence[Checkpoint],
    overrides: Sequence[str],
    *,
    rubric: str | None = None,
) -> Config:
    """The same model and algorithm, trained offline. `with_dataset` completes it.

    Args:
        rubric: whose stored judgements are trained on, and nobody else's are in the run; None: the run's own judges judge.
    """
    config = copied_config(
        source,
        folder,
        suffix="offline",
        overrides=[
            "feeder_config.mode=offline",
            "feeder_config.evaluate_first=false",
            "feeder_config.evaluate_last=false",
            "feeder_config.eval_every=0",
            # Every pass needs the whole data set, however long training takes.
            "bus_config.episodes_max_age_s=0",
            "bus_config.results_max_age_s=0",
            f"trainer_config.stored_version={_UNKNOWN}",
            *overrides,
        ],
    )
    if config.feeder_config.mode != "offline":
        raise ConfigurationError(f"feeder_config.mode is {config.feeder_config.mode}: replay --train trains offline, leave it")
    config = _with_rubric(config, rubric or config.judge_config.rubric, overrides)
    known = _num_stored(folder, config.bus_config)
    version = config.trainer_config.stored_version
    if version == _UNKNOWN:
        version = stored_version(folder_here(config.policy_config.starting_model), checkpoints)
    return dataclasses.replace(
        config,
        feeder_config=dataclasses.replace(config.feeder_config, num_stored=known),
        trainer_config=dataclasses.replace(config.trainer_config, stored_version=version),
    )


def _with_rubric(config: Config, rubric: str, overrides: Sequence[str]) -> Config:
    """The trainer goes by the first rubric of the run, which therefore is the one that there will be judgements of."""
    if not any(text.startswith(_RUBRICS) for text in overrides):
        return dataclasses.replace(config, bus_config=dataclasses.replace(config.bus_config, rubrics=(rubric,)))
    if config.bus_config.trained_rubric != rubric:
        raise ConfigurationError(
            f"the trainer would go by {config.bus_config.trained_rubric}, the first of bus_config.rubrics, and the judgements "
            f"are those of {rubric}: leave bus_config.rubrics out, or choose judgements with --rubric"
        )
    return config


def _num_stored(folder: RunFolder, bus: BusConfig) -> int:
    """Episodes of the data set that the folder's training was begun with; 0: it was not."""
    if not folder.config.is_file():
        return 0
    there = folder.load()
    if there.bus_config.run != bus.run:
        raise ConfigurationError(
            f"{folder.path} holds run {there.bus_config.run}, which is no offline training of this source: choose another "
            "folder with --into"
        )
    if there.bus_config.trained_rubric != bus.trained_rubric:
        raise ConfigurationError(
            f"{folder.path} was begun with the judgements of {there.bus_config.trained_rubric}, and these are those of "
            f"{bus.trained_rubric}: choose another folder with --into"
        )
    return there.feeder_config.num_stored


def with_dataset(config: Config, num_stored: int, num_iterations: int, *, num_selected: int) -> Config:
    """The configuration with the data set that stands on the streams: the trainer consumes all of it.

    Raises:
        ConfigurationError: there is nothing, more than was selected, or the run was begun with another data set.
    """
    known = config.feeder_config.num_stored
    if num_stored == 0:
        raise ConfigurationError("no judged training episode was selected: there is nothing to train on")
    if known not in (0, num_stored):
        raise ConfigurationError(
            f"{config.save_path} was begun with a data set of {known} episodes and now has {num_stored}: its passes would mix "
            "two data sets; choose another folder with --into"
        )
    if num_stored != num_selected:
        raise ConfigurationError(
            f"{config.save_path} holds {num_stored} training episodes from before and {num_selected} are selected: "
            "choose another folder with --into"
        )
    feeder = dataclasses.replace(config.feeder_config, num_stored=num_stored, num_iterations=num_iterations)
    return dataclasses.replace(config, feeder_config=feeder)


def num_iterations(num_stored: int, batch: int, num_passes: int) -> int:
    """Versions that so many passes make: a pass ends with a shorter batch."""
    return num_passes * -(-num_stored // batch)


def stored_version(model: Path | None, checkpoints: Sequence[Checkpoint]) -> int:
    """The newest announced version whose weights are those of `model`, by their hashes; -1: none."""
    weights = {_digest(file) for file in model.glob("*.safetensors")} if model is not None else set()
    same = [
        checkpoint.version
        for checkpoint in checkpoints
        if weights and weights == {file.sha256 for file in checkpoint.files if _is_weights(file.path)}
    ]
    return max(same, default=_UNKNOWN)


def _is_weights(path: str) -> bool:
    return path.endswith(".safetensors") and "/" not in path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
