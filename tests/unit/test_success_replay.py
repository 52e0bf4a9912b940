"""Success replay: which success joins which group, what is kept, and what a run trains on."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from msgspec import structs

from bus.memory import MemoryBus
from ops.simulation.training import SimulatedBuilder
from schemas.bus_config import BusConfig
from schemas.ids import PolicyVersion
from schemas.messages import Judgement
from schemas.objective_config import ObjectiveConfig
from tests.builders import judgement
from tests.support.training.learning_world import Recorder, play_random, train
from tests.support.training.trainer_world import SUBJECTS, judge, member_task
from tests.unit.test_groups import member, names
from tests.unit.test_policy_gradient import KEEPS_UNCHANGED, episodes
from trainer.collapse import GuardMemory
from trainer.episodes.consumption import plan_batch
from trainer.episodes.episode_steps import StepRules, StepStore
from trainer.episodes.groups import Group, Member, intend
from trainer.episodes.intake import Judged
from trainer.episodes.success_replay import SuccessReplay
from trainer.learners.parts import LearningRules, Parts
from trainer.learners.policy_gradient import PolicyGradient
from trainer.truncation import Truncation
from trainer.versions.checkpoints import TrainerState, read_trainer_state

GRPO = ObjectiveConfig(adv_estimator="grpo", loss_type="clipped", group_size=2, dynamic_sampling="drop", success_replay=2)


def solved(group: int, index: int) -> Member:
    return member(group, index, 1.0)


def failed(group: int, index: int) -> Member:
    return member(group, index, 0.0)


def test_a_group_without_a_success_gets_the_newest_of_its_task() -> None:
    replay = SuccessReplay(9)
    assert replay.completed([Group((solved(0, 0), failed(0, 1)))]) == [Group((solved(0, 0), failed(0, 1)))]
    assert [one.episode for one in replay.kept] == [solved(0, 0).episode]
    again, mixed, other = (
        Group((failed(0, 2), failed(0, 3))),
        Group((solved(0, 4), failed(0, 5))),
        Group((failed(1, 0), failed(1, 1))),
    )
    assert names(*replay.completed([again, mixed, other])) == [
        {"t0-m2", "t0-m3", "t0-m0"},
        {"t0-m4", "t0-m5"},
        {"t1-m0", "t1-m1"},
    ]
    assert [one.episode for one in replay.kept] == [solved(0, 4).episode], "the newest"


def test_the_latest_tasks_are_kept_and_baselines_are_not() -> None:
    replay = SuccessReplay(2)
    replay.completed([Group((solved(task, 0), member(task, 1, 1.0, greedy=True))) for task in (0, 1, 0, 2)])
    assert [one.task for one in replay.kept] == ["t0", "t2"]
    assert SuccessReplay(2, replay.kept).kept == replay.kept
    assert SuccessReplay(0, replay.kept).kept == ()


def test_a_replayed_success_is_never_too_old_and_makes_its_group_vary() -> None:
    old = structs.replace(solved(0, 0), replayed=True)
    group = Group((member(0, 2, 0.0, version=9), member(0, 3, 0.0, version=9), old))
    (kept,) = intend([group], GRPO, version=9, bound=1).groups
    assert kept == group


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kept", "fresh", "left"),
    [(4, ((5, 0.0), (5, 0.0)), []), (2, ((4, 1.0), (5, 0.0)), [2])],
    ids=["kept before the return", "judged after it"],
)
async def test_a_success_that_a_discarded_version_played_is_none(
    kept: int, fresh: tuple[tuple[int, float], ...], left: list[int]
) -> None:
    bus, draw = MemoryBus(SUBJECTS), random.Random(0)

    async def judged(index: int, version: int, reward: float) -> Judgement:
        return judgement(await play_random(bus, member_task(0, index), draw, version=version), reward)

    state = TrainerState(
        version=5,
        num_trajectories=0,
        num_updates=0,
        successes=(Member.of(await judged(0, kept, 1.0)),),
        guard=GuardMemory(discarded=((3, 4),)),
    )
    rules = StepRules.of(KEEPS_UNCHANGED, GRPO, stored=False)
    store = StepStore(bus, SUBJECTS, SimulatedBuilder(), cache_bytes=1 << 20, rules=rules)
    unused = cast(Any, None)
    learner = PolicyGradient(
        Parts(engine=unused, store=store, updates=unused, readings=unused),
        state,
        objective=GRPO,
        rules=LearningRules(seed=0, batch_size=2, staleness_bound=1, truncation=Truncation(), max_new_tokens=8),
    )
    is_last = learner.begin()
    batch = [Judged(index, await judged(index, *each)) for index, each in enumerate(fresh, start=1)]
    for item in batch:
        is_last(item.judgement)
        item.ready.set()
    plan = plan_batch([item.judgement for item in batch], version=5, bound=1)
    found = await learner.take_in(batch, plan, PolicyVersion(5), ends_pass=False)
    assert (found["groups_dropped"], found["episodes"]) == (kept == 4, 0)
    assert [one.versions[0] for one in learner.remember(state).successes] == left


@pytest.mark.anyio
@pytest.mark.parametrize("stops", [False, True])
async def test_a_run_learns_from_it_again_after_a_restart_too(tmp_path: Path, stops: bool) -> None:
    bus, recorder, draw = MemoryBus(SUBJECTS), Recorder(), random.Random(0)
    for index, reward in enumerate((1.0, 0.0, 0.0, 0.0)):
        await judge(bus, await play_random(bus, member_task(0, index), draw, version=index // 2), reward)
    for num_iterations in (1, 2) if stops else (2,):
        await train(bus, tmp_path, recorder, GRPO, num_iterations=num_iterations, batch=2, algorithm=KEEPS_UNCHANGED)
    first, second = (json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines())
    assert (first["members_replayed"], second["members_replayed"], second["episodes"]) == (0, 1, 3)
    assert episodes(recorder) == {"t0-m0", "t0-m1", "t0-m2", "t0-m3"}
    again = [item for item in recorder.items if item.sample.ref.episode.endswith("m0")]
    assert len(again) == 2 * len({item.sample.ref for item in again}), "in both iterations"
    assert all((item.targets.advantages > 0).all() for item in again)


@pytest.mark.anyio
@pytest.mark.parametrize("sampling", ["drop", "off"])
async def test_a_success_whose_steps_have_aged_out_is_no_measure_of_others(
    tmp_path: Path, sampling: Literal["drop", "off"]
) -> None:
    now = [1e9]
    bus, recorder, draw = MemoryBus(SUBJECTS, BusConfig(), clock=lambda: now[0]), Recorder(), random.Random(0)
    for index, reward in enumerate((1.0, 0.0, 0.0, 0.0)):
        now[0] += (BusConfig().episodes_max_age_s + 1.0) * (index == 2)
        await judge(bus, await play_random(bus, member_task(0, index), draw, version=index // 2), reward)
        if index % 2:
            objective = replace(GRPO, dynamic_sampling=sampling)
            await train(bus, tmp_path, recorder, objective, num_iterations=1 + index // 2, batch=2, algorithm=KEEPS_UNCHANGED)
    first, second = (json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines())
    assert (first["episodes"], second["members_replayed"]) == (2, 0)
    assert (second["groups"], second["groups_dropped"]) == (1, sampling == "drop"), "its rewards are all equal"
    assert episodes(recorder) == {"t0-m0", "t0-m1"}, "nothing is learnt from failures alone"
    kept = [read_trainer_state(folder).successes for folder in sorted((tmp_path / "checkpoints").glob("v*"))]
    assert [[one.episode for one in successes] for successes in kept] == [[solved(0, 0).episode], []]
