"""How conversations are trained on, by value: versions, optimizer steps, and the learning rate's schedule."""

from dataclasses import replace
from typing import Any

import pytest

from ops.config.loading import load_config
from ops.sft.plan import planned, stretched
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.messages import Trajectory
from tests import builders
from trainer.episodes.validation import is_held_out


def trajectories(*num_steps: int) -> list[Trajectory]:
    return [
        builders.trajectory(builders.task(f"t{number}", max_steps=100), num_steps=count)
        for number, count in enumerate(num_steps)
    ]


def config(*overrides: str) -> Config:
    return load_config("sft", ["algorithm_config.val_split_ratio=0", *overrides])


def test_an_epoch_is_a_version_and_the_rate_falls_over_all_steps() -> None:
    """8 answers in steps of 12 on one device: one step a version; on three versions three steps, of which a tenth warms up."""
    plan = planned(config(), trajectories(3, 5), num_ranks=1)
    assert (plan.num_conversations, plan.num_samples, plan.num_held_out, plan.num_updates) == (2, 8, 0, 3)
    assert (plan.config.feeder_config.num_stored, plan.config.feeder_config.num_iterations) == (2, 3)
    algorithm = plan.config.algorithm_config
    assert (algorithm.lr_scheduler_steps, algorithm.warmup_steps) == (3, 0)


def test_smaller_versions_ranks_and_epochs_are_counted() -> None:
    """Versions of 2 conversations: 40 + 30, 20; steps of 24 samples on two ranks: 3 and 1, in four epochs 16."""
    chosen = config("env_config.train_tasks_rollout_size=2")
    plan = planned(chosen, trajectories(40, 30, 20), num_ranks=2, num_epochs=4)
    assert (plan.config.feeder_config.num_iterations, plan.num_updates) == (8, 16)
    algorithm = plan.config.algorithm_config
    assert (algorithm.lr_scheduler_steps, algorithm.warmup_steps) == (16, 2)
    again = planned(plan.config, trajectories(40, 30, 20), num_ranks=2, begun=plan.config)
    assert again == plan, "the stored configuration goes on as it was begun"
    assert "4 epochs in 8 versions" in str(plan)


def test_epochs_of_several_versions_are_as_many_without_a_number() -> None:
    """The recipe's three epochs of three conversations, two a version."""
    chosen = config("env_config.train_tasks_rollout_size=2")
    plan = planned(chosen, trajectories(40, 30, 20), num_ranks=1)
    assert plan.config.feeder_config.num_iterations == 6
    assert "3 epochs in 6 versions" in str(plan)
    for again in (plan.config, chosen):
        assert planned(again, trajectories(40, 30, 20), num_ranks=1, begun=plan.config).config == plan.config


@pytest.mark.parametrize("prefix", ["", "++"])
def test_what_a_person_wrote_of_the_schedule_stays(prefix: str) -> None:
    written = f"{prefix}algorithm_config.lr_scheduler_steps=70"
    played = trajectories(40)
    plan = planned(config(written), played, num_ranks=1, overrides=[written])
    assert plan.config.algorithm_config.lr_scheduler_steps == 70
    for again in (plan.config, config()):
        resumed = planned(again, played, num_ranks=1, begun=plan.config).config.algorithm_config
        assert (resumed.lr_scheduler_steps, resumed.warmup_steps) == (70, 10)
    longer = planned(plan.config, played, num_ranks=1, num_epochs=30, begun=plan.config)
    assert longer.config.algorithm_config.lr_scheduler_steps == longer.num_updates == 120


def test_a_constant_rate_has_no_steps_to_stretch() -> None:
    constant = config("algorithm_config.lr_scheduler_type=constant_with_warmup", "algorithm_config.lr_scheduler_steps=0")
    assert stretched(constant.algorithm_config, 500) == constant.algorithm_config


def test_held_out_conversations_and_last_turns_are_counted() -> None:
    played = trajectories(*[3] * 40)
    held_out = sum(is_held_out(each.task.task, 0.3) for each in played)
    assert 0 < held_out < 40
    chosen = load_config("sft", ["algorithm_config.val_split_ratio=0.3"])
    plan = planned(chosen, played, num_ranks=1)
    assert (plan.num_samples, plan.num_held_out) == (3 * (40 - held_out), 3 * held_out)
    last = replace(chosen, objective_config=replace(chosen.objective_config, train_on_last_turn=True))
    plan = planned(last, played, num_ranks=1)
    assert (plan.num_samples, plan.num_held_out) == (40 - held_out, held_out)


@pytest.mark.parametrize(
    ("overrides", "played", "what"),
    [
        ((), (), "holds no conversation: import some"),
        (("algorithm_config.val_split_ratio=0.999",), (3, 3), "every conversation is held out"),
        (("feeder_config.mode=async", "env_config.train_tasks=t.jsonl"), (3,), "mode is async"),
        (("algorithm_config.replay_iterations=4",), (3,), "replay_iterations is 4"),
        (("algorithm_config.positive_samples_to_train=5",), (3, 3), "a version has 6 answers"),
        (("objective_config.adv_estimator=grpo", "objective_config.loss_type=clipped"), (3,), "conversations are imitated"),
    ],
)
def test_what_would_not_train_on_all_of_it_is_refused(overrides: Any, played: Any, what: str) -> None:
    with pytest.raises(ConfigurationError, match=what):
        planned(config(*overrides), trajectories(*played), num_ranks=1)
