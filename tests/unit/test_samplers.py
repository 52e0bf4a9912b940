"""Samplers, attempt levels and groups without variance, by value."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from structlog.testing import capture_logs

from schemas.env_config import DifficultyShare, EnvConfig, SuccessBands
from schemas.errors import ConfigurationError
from schemas.ids import GroupId, TaskId
from schemas.messages import Judgement, Verdict
from tests import builders
from tests.unit.test_curriculum import SPEC
from trainer.feeding.attempts import Attempts, TaskHistory
from trainer.feeding.refill import Refill, Refilled
from trainer.feeding.samplers import Sampler, sampler_of
from trainer.feeding.samplers.adaptive import AdaptiveSampler, site_weights
from trainer.feeding.samplers.frontier import FrontierSampler
from trainer.feeding.samplers.ratio import allocation
from trainer.feeding.samplers.uniform import UniformSampler
from trainer.feeding.task_files import TaskSpec
from trainer.group_variance import lacks_variance


def specs(difficulties: list[int]) -> tuple[TaskSpec, ...]:
    return tuple(replace(SPEC, task=TaskId(f"t{index}"), difficulty=hard) for index, hard in enumerate(difficulties))


SEVEN = specs([1] * 7)
CLASSES = {"easy": DifficultyShare(range=(1, 3), weight=2.0), "hard": DifficultyShare(range=(7, 9), weight=1.0)}


def ratio(tasks: tuple[TaskSpec, ...], size: int, *, deduplicate: bool = True) -> Sampler:
    env = EnvConfig(
        train_tasks_rollout_size=size,
        train_tasks_sampler="ratio",
        difficulty_ratio=CLASSES,
        deduplicate_across_iterations=deduplicate,
    )
    return sampler_of(env, tasks, num_members=1, seed=3)


def names(sampler: Sampler, index: int) -> list[str]:
    return [spec.task for spec in sampler.round(index, {})]


def test_uniform_rounds_are_the_whole_file_in_another_order() -> None:
    rounds = [names(UniformSampler(SEVEN, seed=3), index) for index in range(3)]
    assert all(sorted(tasks) == [spec.task for spec in SEVEN] for tasks in rounds)
    assert rounds[0] != rounds[1] != rounds[2]
    assert rounds[1] == names(UniformSampler(SEVEN, seed=3), 1)
    assert rounds[1] != names(UniformSampler(SEVEN, seed=4), 1)


def test_uniform_without_deduplication_draws_every_iteration_from_the_whole_file() -> None:
    env = EnvConfig(train_tasks_rollout_size=12, deduplicate_across_iterations=False)
    sampler = sampler_of(env, SEVEN, num_members=3, seed=3)
    rounds = [names(sampler, index) for index in range(50)]
    assert all(len(tasks) == len(set(tasks)) == 4 for tasks in rounds)
    assert any(set(before) & set(after) for before, after in pairwise(rounds))


@pytest.mark.parametrize(
    ("weights", "size", "shares"),
    [
        ({"a": 1, "b": 1, "c": 1}, 10, [4, 3, 3]),
        ({"a": 0.5, "b": 0.3, "c": 0.2}, 7, [4, 2, 1]),  # 3.5, 2.1, 1.4
        ({"a": 1, "b": 2}, 3, [1, 2]),
        ({"a": 0.1, "b": 0.2, "c": 0.7}, 10, [1, 2, 7]),
        ({"a": 100, "b": 1}, 1, [1, 0]),
    ],
)
def test_shares_are_rounded_down_and_the_rest_goes_to_the_largest_remainders(
    weights: dict[str, float], size: int, shares: list[int]
) -> None:
    assert list(allocation(weights, size).values()) == shares


@pytest.mark.parametrize("deduplicate", [True, False])
def test_every_ratio_round_has_its_share_of_each_class(deduplicate: bool) -> None:
    tasks = specs([1] * 10 + [5] * 4 + [8] * 5)
    sampler = ratio(tasks, 6, deduplicate=deduplicate)
    rounds = [sampler.round(index, {}) for index in range(20)]
    assert all(Counter(spec.difficulty for spec in chosen) == {1: 4, 8: 2} for chosen in rounds)
    assert all(len({spec.task for spec in chosen}) == 6 for chosen in rounds)
    assert rounds == [ratio(tasks, 6, deduplicate=deduplicate).round(index, {}) for index in range(20)]
    pairs = zip(rounds[::2], rounds[1::2], strict=True)
    repeated = sum(len({spec.task for spec in before} & {spec.task for spec in after}) for before, after in pairs)
    assert (repeated == 0) == deduplicate, "ten easy tasks make two rounds of four before one comes again"


def test_a_class_with_too_few_tasks_gives_all_and_says_so() -> None:
    with capture_logs() as logs:
        sampler = ratio(specs([1] * 10 + [5] * 3 + [8]), 9)
    assert Counter(spec.difficulty for spec in sampler.round(0, {})) == {1: 6, 8: 1}
    assert [(log["event"], log.get("difficulty_class"), log["num_tasks"]) for log in logs] == [
        ("too_few_tasks", "hard", 1),
        ("tasks_of_no_difficulty_class", None, 3),
    ]


def test_a_ratio_without_any_task_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="write ranges that"):
        ratio(specs([5, 5]), 4)


def test_adaptive_prefers_new_tasks_to_failed_and_failed_to_solved_ones() -> None:
    tasks = specs([1] * 6)
    sampler = AdaptiveSampler(tasks, seed=3, per_round=1)
    levels = {spec.task: TaskHistory(level) for level, spec in enumerate(tasks)}
    first = Counter[str](sampler.round(index, levels)[0].task for index in range(3000))
    assert first["t0"] / 3000 == pytest.approx(100 / 111.111, abs=0.02)
    assert first["t1"] / 3000 == pytest.approx(10 / 111.111, abs=0.02)
    whole = AdaptiveSampler(tasks, seed=3, per_round=9).round(0, levels)
    assert sorted(spec.task for spec in whole) == sorted(levels), "too few tasks give all, each once"
    assert sampler.round(5, levels) == AdaptiveSampler(tasks, seed=3, per_round=1).round(5, levels)


def shares(tasks: tuple[TaskSpec, ...], history: dict[TaskId, TaskHistory]) -> list[float]:
    """Of the first draws of many rounds."""
    sampler = FrontierSampler(tasks, seed=3, per_round=1)
    assert sampler.adapts
    first = Counter[str](sampler.round(index, history)[0].task for index in range(4000))
    return [first[spec.task] / 4000 for spec in tasks]


def by_weight(rates: list[float]) -> object:
    weights = [4 * rate * (1 - rate) for rate in rates]
    return pytest.approx([weight / sum(weights) for weight in weights], abs=0.03)


def test_the_frontier_is_where_a_group_is_solved_by_half() -> None:
    """Each is a kind of its own, that counts as a quarter of a task with 0.5 beside it: 0.1, 0.3, 0.5 and 0.9."""
    tasks = tuple(replace(spec, subdomain="") for spec in specs([1] * 5))
    history = {spec.task: TaskHistory(0, rate) for spec, rate in zip(tasks, [None, 0.0, 0.25, 0.5, 1.0], strict=True)}
    assert shares(tasks, history) == by_weight([0.5, (0.1 + 0.0) / 2, (0.3 + 0.25) / 2, 0.5, (0.9 + 1.0) / 2])


def test_a_task_is_judged_by_others_of_its_subdomain_too() -> None:
    """The hard kind: (0 + 0.5 + 0.125) / 2.25."""
    kinds = ["easy", "hard", "hard", "hard", "new"]
    tasks = tuple(replace(spec, subdomain=kind) for spec, kind in zip(specs([1] * 5), kinds, strict=True))
    rates = [1.0, 0.0, 0.5, None, None]
    history = {spec.task: TaskHistory(0, rate) for spec, rate in zip(tasks, rates, strict=True)}
    hard = 0.625 / 2.25
    assert shares(tasks, history) == by_weight([(0.9 + 1.0) / 2, hard / 2, (hard + 0.5) / 2, hard, 0.5])


def test_what_was_tried_long_ago_is_believed_less() -> None:
    """Three failures of one kind, 0, 1 and 2 rounds ago, weigh 1, 1/2 and 1/4; one of another kind, 9 rounds ago, next to
    nothing."""
    kinds = ["hard", "hard", "hard", "forgotten"]
    tasks = tuple(replace(spec, subdomain=kind) for spec, kind in zip(specs([1] * 4), kinds, strict=True))
    history = {spec.task: TaskHistory(0, 0.0, age) for spec, age in zip(tasks, [0, 1, 2, 9], strict=True)}
    hard, forgotten = 0.125 / 2.0, 0.125 / (0.25 + 2**-9)
    assert shares(tasks, history) == by_weight([hard / 2, hard / 1.5, hard / 1.25, forgotten / (1 + 2**-9)])


def test_bands_of_success_have_their_weights() -> None:
    tasks = specs([1] * 8)
    rates = [None, 0.0, 0.29, 0.3, 0.69, 0.7, 0.99, 1.0]
    history = {spec.task: TaskHistory(0, rate) for spec, rate in zip(tasks, rates, strict=True)}
    env = EnvConfig(train_tasks_rollout_size=1, train_tasks_sampler="success_bands", success_bands=SuccessBands(low=0.2))
    sampler = sampler_of(env, tasks, num_members=1, seed=3)
    assert sampler.adapts
    first = Counter[str](sampler.round(index, history)[0].task for index in range(8000))
    weights = [1.0, 0.5, 0.2, 1.5, 1.5, 1.0, 1.0, 0.5]
    expected = [weight / sum(weights) for weight in weights]
    assert [first[spec.task] / 8000 for spec in tasks] == pytest.approx(expected, abs=0.02)


def test_sites_with_few_tasks_weigh_more() -> None:
    sites = [
        "https://www.a.org/1",
        "https://a.org/2",
        "https://a.org/3",
        "https://a.org/4",
        "https://b.org",
        "https://b.org/2",
    ]
    tasks = tuple(replace(spec, website=site) for spec, site in zip(specs([1] * 7), [*sites, "https://c.org"], strict=True))
    # 1/4, 1/2 and 1: a third of the way from 0.25 to 1 is a third of the way from 0.1 to 10.
    assert site_weights(tasks) == pytest.approx(np.array([0.1] * 4 + [3.4] * 2 + [10.0]))
    assert site_weights(tasks[:4]) == pytest.approx(np.ones(4))


def judged(name: str, reward: float | None, *, group: str = "", seq: int = 0) -> Judgement:
    verdict = Verdict.EXCLUDED if reward is None else Verdict.SUCCESS if reward > 0.5 else Verdict.FAILURE
    task = builders.task(name, index=seq)
    return Judgement(
        episode=task.episode,
        group=GroupId(group or name),
        split=task.split,
        rubric=builders.RUBRIC,
        verdict=verdict,
        reward=reward,
        trajectory=builders.trajectory(task),
    )


def test_attempt_levels_count_failures_and_end_with_a_success() -> None:
    attempts = Attempts()
    results = [("t0", 0.0), ("t1", 0.0), ("t0", 0.0), ("t2", None), ("t0", 1.0), *[("t1", 0.0)] * 9]
    tasks = (*SEVEN[:3], replace(SEVEN[3], attempt_level=2), replace(SEVEN[4], attempt_level=7))
    levels = [[each.level for each in attempts.history(tasks).values()]]
    for seq, (name, reward) in enumerate(results, start=1):
        attempts.add(seq, judged(name, reward, group=f"g{seq}"))
        levels.append([each.level for each in attempts.history(tasks).values()])
    assert [levels[seq] for seq in (0, 3, 4, 5, 14)] == [
        [0, 0, 0, 2, 5],
        [2, 1, 0, 2, 5],
        [2, 1, 0, 2, 5],
        [5, 1, 0, 2, 5],
        [5, 5, 0, 2, 5],
    ]
    assert attempts.last_seq == 14


def test_a_group_is_one_attempt_and_solved_when_all_of_it_succeeded() -> None:
    attempts = Attempts(num_members=5)
    levels = []
    for seq, reward in enumerate([1.0, 1.0, 0.0, 0.0, None], start=1):
        attempts.add(seq, judged("t0", reward, group="g"))
        levels.append(attempts.history(SEVEN[:1])[TaskId("t0")].level)
    assert levels == [5, 5, 1, 1, 1]


def test_the_pass_rate_is_that_of_late() -> None:
    """Attempts of 2 of 4, 4 of 4 (one without a verdict) and 0 of 4: 1/2, then 3/4, then 3/8."""
    attempts, rates = Attempts(num_members=4), []
    for number, rewards in enumerate([(1.0, 0.0, 0.0, 1.0), (1.0, None, 1.0, 1.0), (0.0,) * 4]):
        for member, reward in enumerate(rewards):
            seq = 4 * number + member + 1
            rates.append(attempts.history(SEVEN[:1])[TaskId("t0")].pass_rate)
            attempts.add(seq, judged("t0", reward, group=f"g{number}", seq=seq))
    rates.append(attempts.history(SEVEN[:1])[TaskId("t0")].pass_rate)
    assert rates[::4] == [None, 0.5, 0.75, 0.375]


def test_the_age_is_how_many_tasks_were_tried_since() -> None:
    attempts, tasks = Attempts(num_members=2), SEVEN[:4]
    for seq, name in enumerate(["t0", "t0", "t1", "t1", "t2", "t2", "t0", "t0", "t3"], start=1):
        attempts.add(seq, judged(name, 1.0, group=f"g{(seq - 1) // 2}"))
    assert [attempts.history(tasks)[spec.task].age for spec in tasks] == [0, 2, 1, 0], "t3's attempt has not ended"


@pytest.mark.parametrize("written_after", range(9))
def test_attempts_are_the_same_whenever_their_memory_was_written_and_read(written_after: int) -> None:
    """Whoever restored them reads some judgements a second time."""
    results = [("t0", 0.0), ("t1", 0.0), ("t0", 1.0), ("t1", None), ("t2", None), ("t2", None), ("t1", 0.0), ("t3", 1.0)]
    ours, restored = Attempts(num_members=2), Attempts(num_members=2)
    every = [(seq, judged(name, reward, group=f"g-{name}-{seq // 4}")) for seq, (name, reward) in enumerate(results, start=1)]
    for seq, judgement in every:
        ours.add(seq, judgement)
        if seq == written_after:
            for part in ours.changed():
                restored.restore(part)
    for seq, judgement in every:
        restored.add(seq, judgement)
    assert restored.history(SEVEN) == ours.history(SEVEN)


@pytest.mark.parametrize(
    ("rewards", "lacks"),
    [([0.0, 0.0], True), ([0.0, 1.0], False), ([None, 0.5, 0.5], True), ([None, None], True), ([0.5, 0.5 + 1e-9], True)],
)
def test_groups_that_teach_nothing(rewards: list[float | None], lacks: bool) -> None:
    assert lacks_variance(rewards) is lacks


def test_refill_counts_complete_groups_by_the_version_that_used_them_up() -> None:
    refill = Refill(num_members=2)
    order = [("a", 0.0), ("b", 1.0), ("a", 0.0), ("c", None), ("b", 0.0), ("c", 1.0), ("d", 0.0)]
    for seq, (group, reward) in enumerate(order, start=1):
        refill.add(seq, judged(f"{group}{seq}", reward, group=group))
    assert [refill.after(seq) for seq in (0, 2, 3, 5, 6)] == [
        Refilled(0, 4),
        Refilled(0, 4),
        Refilled(2, 2),
        Refilled(4, 2),
        Refilled(6, 0),
    ]


def test_refill_forgets_what_no_version_asks_about_and_counts_on() -> None:
    every, less = Refill(num_members=2), Refill(num_members=2)
    for seq in range(1, 41):
        given = judged(f"t{seq}", float(seq % 3 == 0), group=f"g{(seq - 1) // 2}")
        every.add(seq, given)
        less.add(seq, given)
        less.forget(seq // 4 * 4)
        less = Refill.of(less.memory(), 2)
        assert less.after(seq) == every.after(seq)
        assert less.after(seq // 4 * 4) == every.after(seq // 4 * 4)
    assert len(less.memory().complete) <= 2
    assert less.after(3).used_up == 0, "of a version that is forgotten it is known too little"


@pytest.mark.parametrize("given_up", [(2,), (0,), (0, 1, 2)])
def test_a_group_whose_member_will_never_be_judged_is_used_up_and_not_in_vain(given_up: tuple[int, ...]) -> None:
    refill = Refill(num_members=3)
    for member in range(3):
        if member in given_up:
            refill.give_up(GroupId("g"))
        else:
            refill.add(member + 1, judged("t0", float(member), group="g"))
        refill = Refill.of(refill.memory(), 3)
    assert refill.after(0) == refill.after(3) == Refilled(used_up=3, in_vain=0)
