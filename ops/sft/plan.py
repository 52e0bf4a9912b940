"""Decides how conversations are trained on: versions, optimizer steps, and the schedule of the learning rate. Pure."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from ops.config.loading import overridden_keys
from schemas.algorithm_config import AlgorithmConfig
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.messages import Trajectory
from schemas.requirement import require
from trainer.episodes.validation import is_held_out

_SCHEDULE = ("algorithm_config.lr_scheduler_steps", "algorithm_config.warmup_steps")


@dataclass(frozen=True, kw_only=True)
class SftPlan:
    """What is going to be trained on."""

    config: Config
    """With the data set, the versions and the schedule."""
    num_conversations: int
    num_samples: int
    """Answers that are learnt in an epoch; some of them may be too long."""
    num_held_out: int
    """Answers of conversations that `val_loss` is measured on."""
    num_updates: int
    """Optimizer steps, at most."""

    def __str__(self) -> str:
        algorithm, versions = self.config.algorithm_config, self.config.feeder_config.num_iterations
        epochs = versions / -(-self.num_conversations // self.config.env_config.train_tasks_rollout_size)
        falls = algorithm.lr_scheduler_type in ("linear", "cosine")
        until = f" over {algorithm.lr_scheduler_steps}" if falls else ""
        return (
            f"{self.num_conversations} conversations, {self.num_samples} answers to learn and {self.num_held_out} held out: "
            f"{epochs:g} epochs in {versions} versions, at most {self.num_updates} optimizer steps; the learning rate is "
            f"{algorithm.lr_scheduler_type}{until}, warm-up {algorithm.warmup_steps}"
        )


def planned(
    config: Config,
    trajectories: Sequence[Trajectory],
    *,
    num_ranks: int,
    num_epochs: int | None = None,
    overrides: Sequence[str] = (),
    begun: Config | None = None,
) -> SftPlan:
    """
    Args:
        config: of a run that trains offline. `feeder_config.num_iterations` are epochs in one that knows no data set yet, and
            versions in one of a plan.
        trajectories: of the conversations, in the order in which they are trained on.
        num_epochs: in place of `feeder_config.num_iterations`.
        overrides: a schedule that a person wrote among them stays as it is.
        begun: what the run's training was begun with; its schedule goes on, unless the versions are others.

    Raises:
        ConfigurationError: there is nothing to train on, or the configuration would not train on all of it.
    """
    _require_imitation(config)
    if not trajectories:
        raise ConfigurationError(f"{config.save_path} holds no conversation: import some, millrace import DATA --from FORM")
    answers = [_num_answers(trajectory, config) for trajectory in trajectories]
    ratio = config.algorithm_config.val_split_ratio
    held_out = [is_held_out(trajectory.task.task, ratio) for trajectory in trajectories]
    learnt = [0 if held else count for count, held in zip(answers, held_out, strict=True)]
    require(any(learnt), "every conversation is held out: lower algorithm_config.val_split_ratio")
    size = config.env_config.train_tasks_rollout_size
    batches = [sum(learnt[first : first + size]) for first in range(0, len(learnt), size)]
    algorithm = config.algorithm_config
    require(
        algorithm.positive_samples_to_train >= max(batches),
        f"algorithm_config.positive_samples_to_train is {algorithm.positive_samples_to_train}, and a version has "
        f"{max(batches)} answers to learn: write so many or more",
    )
    if num_epochs is None and not config.feeder_config.num_stored:
        num_epochs = config.feeder_config.num_iterations
    versions = config.feeder_config.num_iterations if num_epochs is None else num_epochs * len(batches)
    step = algorithm.per_device_train_batch_size * algorithm.gradient_accumulation_steps * num_ranks
    updates = [algorithm.num_train_epochs * -(-batch // step) for batch in batches]
    num_updates = sum(updates[number % len(updates)] for number in range(versions))
    written = any(key in _SCHEDULE for key, _ in overridden_keys(overrides))
    if not written:
        goes_on = begun if begun and begun.feeder_config.num_iterations == versions else None
        algorithm = _scheduled_as(goes_on, algorithm) if goes_on else stretched(algorithm, num_updates)
    feeder = dataclasses.replace(config.feeder_config, num_stored=len(trajectories), num_iterations=versions)
    return SftPlan(
        config=dataclasses.replace(
            config,
            feeder_config=feeder,
            algorithm_config=algorithm,
        ),
        num_conversations=len(trajectories),
        num_samples=sum(learnt),
        num_held_out=sum(answers) - sum(learnt),
        num_updates=num_updates,
    )


def stretched(algorithm: AlgorithmConfig, num_updates: int) -> AlgorithmConfig:
    """A rate that falls does so over all optimizer steps there are, and warms up in the same share of them as before."""
    if algorithm.lr_scheduler_type not in ("linear", "cosine") or num_updates < 2:
        return algorithm
    share = algorithm.warmup_steps / algorithm.lr_scheduler_steps
    warmup = min(round(share * num_updates), num_updates - 1)
    return dataclasses.replace(algorithm, lr_scheduler_steps=num_updates, warmup_steps=warmup)


def _scheduled_as(begun: Config, algorithm: AlgorithmConfig) -> AlgorithmConfig:
    schedule = begun.algorithm_config
    return dataclasses.replace(algorithm, lr_scheduler_steps=schedule.lr_scheduler_steps, warmup_steps=schedule.warmup_steps)


def _num_answers(trajectory: Trajectory, config: Config) -> int:
    """That a conversation offers."""
    return min(1, trajectory.num_steps) if config.objective_config.train_on_last_turn else trajectory.num_steps


def _require_imitation(config: Config) -> None:
    mode, objective, algorithm = config.feeder_config.mode, config.objective_config, config.algorithm_config
    hint = "begin the run with --config sft"
    require(mode == "offline", f"feeder_config.mode is {mode}, and conversations are trained on offline: {hint}")
    require(
        objective.imitates,
        f"objective_config.adv_estimator is {objective.adv_estimator}, and conversations are imitated: {hint}",
    )
    require(
        algorithm.replay_iterations == 1,
        f"algorithm_config.replay_iterations is {algorithm.replay_iterations}, and a version would learn earlier ones' "
        "conversations again: write 1",
    )
