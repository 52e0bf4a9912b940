"""Sampling, admission and evaluation rounds, by value."""

from dataclasses import replace

import pytest

from bus.codec import decode, encode
from ops.config.loading import load_config
from schemas.env_config import EnvConfig
from schemas.feeder_config import FeederConfig, Stage
from schemas.ids import PolicyVersion, RunName, TaskId
from schemas.messages import Fact, Split
from trainer.feeding.curriculum import Admission, Slot, evaluation_slots, evaluation_versions, stragglers_due, task_of
from trainer.feeding.refill import Refilled
from trainer.feeding.task_files import TaskSpec

SPEC = TaskSpec(
    task=TaskId("a"),
    instruction="click",
    website="demo:click_button?seed=1",
    domain="demo",
    subdomain="click",
    difficulty=5,
    facts=(Fact(description="clicked"),),
    reference_answer="yes",
)
SPECS = tuple(replace(SPEC, task=TaskId(f"t{index}")) for index in range(7))
ADMISSION = Admission(batch=10, max_concurrent=16, staleness_bound=1, total=100)


@pytest.mark.parametrize(
    ("version", "admitted", "running", "expected"),
    [
        (0, 0, 0, 16),  # up to max_concurrent
        (0, 16, 16, 0),
        (0, 16, 10, 4),  # (1 + 0 + 1) * 10 - 16
        (0, 20, 0, 0),
        (1, 20, 0, 10),
        (1, 35, 0, 0),  # a version that went back admits nothing, and nothing below zero
        (50, 98, 0, 2),  # the run's total
        (50, 100, 0, 0),
    ],
)
def test_admission_is_the_smallest_of_its_limits(version: int, admitted: int, running: int, expected: int) -> None:
    assert ADMISSION.allowed(version=version, admitted=admitted, running=running) == expected


def test_without_training_only_the_total_limits() -> None:
    collect = replace(ADMISSION, staleness_bound=None)
    assert collect.limit(0) == 100
    assert collect.allowed(version=0, admitted=90, running=2) == 10


@pytest.mark.parametrize(
    ("used_up", "in_vain", "limit"),
    [
        (0, 0, 20),
        (0, 8, 28),
        (14, 0, 34),  # version 1 used 14 up: 10 of use, 4 in vain
        (40, 4, 64),  # an iteration of 40 in vain ended: none of them is played again
        (0, 61, 80),  # no more than max_refill iterations, in whole groups
    ],
)
def test_refill_admits_further_episodes_up_to_a_bound(used_up: int, in_vain: int, limit: int) -> None:
    refill = replace(ADMISSION, num_members=4, max_refill=4.0)
    refilled = Refilled(used_up, in_vain)
    assert refill.limit(1, refilled) == limit
    assert refill.is_exhausted(1, refilled) == (in_vain >= 60)
    assert refill.limit(9, refilled) == used_up + 10 + min(in_vain, 32), "the last iteration: 10 are left, 30 in groups of 4"


def test_evaluation_rounds_repeat_the_first_tasks_in_order() -> None:
    env = EnvConfig(test_tasks_rollout_size=2, test_tasks_repeat_times=2)
    slots = evaluation_slots(SPECS, env, PolicyVersion(3))
    assert [(slot.spec.task, slot.member, slot.round) for slot in slots] == [
        ("t0", 0, 3),
        ("t1", 0, 3),
        ("t0", 1, 3),
        ("t1", 1, 3),
    ]
    assert [slot.index for slot in slots] == [12, 13, 14, 15]
    everything = evaluation_slots(SPECS, EnvConfig(test_tasks_rollout_size=-1), PolicyVersion(0))
    assert len(everything) == 7


def test_versions_to_evaluate() -> None:
    config = FeederConfig(num_iterations=10)
    assert evaluation_versions(config) == ()
    assert evaluation_versions(replace(config, evaluate_first=True, evaluate_last=True)) == (0, 10)
    assert evaluation_versions(replace(config, eval_every=4)) == (4, 8)
    assert evaluation_versions(replace(config, eval_every=5, evaluate_last=True)) == (5, 10)


def test_a_task_carries_what_its_episode_needs() -> None:
    slot = Slot(SPEC, 2, 2)
    given = {"run": RunName("r"), "env": EnvConfig()}
    task = task_of(slot, split=Split.TRAIN, feeder=FeederConfig(), version=PolicyVersion(4), **given)  # type: ignore[arg-type]
    assert (task.episode, task.group, task.index) == ("train-r0002-a-m0", "train-r0002-a", 2)
    assert (task.max_steps, task.timeout_s, task.policy_version) == (20, 18_000.0, 4)
    assert (task.facts, task.reference_answer, task.website) == (SPEC.facts, "yes", SPEC.website)
    showing = FeederConfig(demonstrate=True)
    shown = task_of(slot, split=Split.EVAL, feeder=showing, version=PolicyVersion(0), **given)  # type: ignore[arg-type]
    assert (shown.episode, shown.max_steps, shown.demonstrate) == ("demo-r0002-a-m0", 50, True)


@pytest.mark.parametrize("stages", ["{}", "{long: {from_version: 0, max_steps: 10000}}"])
def test_the_largest_numbers_that_a_configuration_takes_stand_in_a_task(stages: str) -> None:
    config = load_config(
        "update_online",
        [
            f"feeder_config.stages={stages}",
            "env_config.train_difficulty_max_steps={easy: 10000, medium: 10000, hard: 10000}",
            "env_config.task_timeout_minutes=1e30",
            "env_config.max_unparsed=9007199254740991",
        ],
    )
    slot, run, env, feeder = Slot(SPEC, 2, 2), RunName("r"), config.env_config, config.feeder_config
    task = task_of(slot, run=run, split=Split.TRAIN, env=env, feeder=feeder, version=PolicyVersion(0))
    assert decode(encode(task)) == task
    assert task.max_steps == 10_000


def test_stages_cap_the_steps_of_training_episodes_from_a_version_on() -> None:
    stages = {"short": Stage(from_version=2, max_steps=5), "long": Stage(from_version=4, max_steps=30)}
    feeder = FeederConfig(stages={**stages, "slow": Stage(from_version=6, learning_rate=1e-7)})

    def cap(version: int, split: Split = Split.TRAIN) -> int:
        slot, run, env = Slot(SPEC, 2, 2), RunName("r"), EnvConfig()
        return task_of(slot, run=run, split=split, env=env, feeder=feeder, version=PolicyVersion(version)).max_steps

    assert [cap(version) for version in (0, 1, 2, 3, 4, 9)] == [20, 20, 5, 5, 30, 30]
    assert cap(9, Split.EVAL) == 50
    assert [feeder.learning_rate(version) for version in (5, 6, 9)] == [None, 1e-7, 1e-7]


@pytest.mark.parametrize(
    ("ended", "since_s", "due"),
    [(94, 99.0, False), (95, None, False), (95, 29.0, False), (95, 30.0, True), (100, 99.0, False)],
)
def test_stragglers_are_due_after_threshold_and_grace(ended: int, since_s: float | None, due: bool) -> None:
    assert stragglers_due(ended=ended, batch=100, threshold=0.95, since_s=since_s, grace_s=30.0) is due
