"""Groups: how they are assembled, carried over, dropped, refilled and closed, by value."""

import itertools

import msgspec
import pytest
from msgspec import structs

from schemas.messages import Judgement, Outcome, Trajectory
from schemas.objective_config import ObjectiveConfig
from tests.builders import judgement
from tests.support.training.trainer_world import member_task
from trainer.collapse import GuardMemory
from trainer.episodes.groups import Group, Groups, Member, Refilled, intend
from trainer.estimators import num_members

GRPO = ObjectiveConfig(adv_estimator="grpo", loss_type="decoupled", group_size=2)
REMAX = ObjectiveConfig(adv_estimator="remax", loss_type="decoupled", group_size=1)


def judged(group: int, index: int, reward: float | None = 1.0, *, version: int = 0, greedy: bool = False) -> Judgement:
    task = member_task(group, index, greedy=greedy)
    played = Trajectory(task=task, attempt=1, outcome=Outcome.DONE, num_steps=2, num_observations=2, versions=(version,) * 2)  # type: ignore[arg-type]
    return judgement(played, reward)


def member(group: int, index: int, reward: float | None = 1.0, *, version: int = 0, greedy: bool = False) -> Member:
    return Member.of(judged(group, index, reward, version=version, greedy=greedy))


def names(*groups: Group | None) -> list[set[str]]:
    return [{one.episode.removeprefix("train-r0000-") for one in group.members} for group in groups if group is not None]


def test_a_member_names_the_records_that_its_trajectory_names() -> None:
    given = judged(0, 1, 0.5)
    kept = Member.of(given)
    assert (kept.steps, kept.observations) == (given.trajectory.steps, given.trajectory.observations)
    assert (kept.reward, kept.versions, kept.greedy) == (0.5, (0, 0), False)
    assert Member.of(judged(0, 0, None)).reward is None
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(kept), type=Member) == kept


def test_groups_are_the_same_in_whichever_order_members_arrive() -> None:
    members = [member(group, index) for group in range(2) for index in range(3)]
    for order in itertools.permutations(members):
        groups = Groups(3)
        complete = [groups.arrive(one) for one in order]
        assert sorted(names(*complete), key=min) == [{"t0-m0", "t0-m1", "t0-m2"}, {"t1-m0", "t1-m1", "t1-m2"}]
        assert complete[-1] is not None, "the last one completes a group"
        assert groups.carried == ()


def test_whatever_the_verdict_a_member_has_arrived() -> None:
    groups = Groups(2)
    assert groups.arrive(member(0, 0, None)) is None
    assert names(groups.arrive(member(0, 1, None))) == [{"t0-m0", "t0-m1"}]


def test_a_member_that_comes_again_changes_nothing() -> None:
    groups = Groups(2)
    assert [groups.arrive(member(0, 0)) for _ in range(3)] == [None] * 3
    assert names(groups.arrive(member(0, 1))) == [{"t0-m0", "t0-m1"}]


def test_what_is_carried_over_completes_later() -> None:
    whole = Groups(2)
    order = [member(0, 0), member(1, 0), member(2, 1), member(1, 1), member(2, 0), member(0, 1)]
    expected = [whole.arrive(one) for one in order]
    for stop in range(len(order)):
        before = Groups(2)
        first = [before.arrive(one) for one in order[:stop]]
        kept = msgspec.msgpack.decode(msgspec.msgpack.encode(before.carried), type=tuple[Member, ...])
        after = Groups(2, kept)
        assert first + [after.arrive(one) for one in order[stop:]] == expected


def test_without_groups_every_episode_is_one() -> None:
    groups = Groups(1)
    assert names(groups.arrive(member(0, 0)), groups.arrive(member(0, 1))) == [{"t0-m0"}, {"t0-m1"}]


def test_the_end_of_a_pass_closes_what_is_incomplete() -> None:
    groups = Groups(3)
    for one in (member(1, 0), member(0, 0), member(1, 2)):
        groups.arrive(one)
    assert names(*groups.close()) == [{"t1-m0", "t1-m2"}, {"t0-m0"}]
    assert groups.carried == ()
    assert groups.close() == []


@pytest.mark.parametrize(
    ("rewards", "varies"), [([1.0, 0.0], True), ([1.0, 1.0], False), ([1.0, None], False), ([None], False)]
)
def test_a_group_varies_when_scored_rewards_differ(rewards: list[float | None], varies: bool) -> None:
    assert Group(tuple(member(0, index, reward) for index, reward in enumerate(rewards))).varies is varies


def groups_of(*rewards: tuple[float | None, ...], version: int = 0) -> list[Group]:
    return [
        Group(tuple(member(group, index, reward, version=version) for index, reward in enumerate(given)))
        for group, given in enumerate(rewards)
    ]


def test_dynamic_sampling_drops_groups_without_variance() -> None:
    complete = groups_of((1.0, 1.0), (1.0, 0.0), (None, 1.0), (None, None))
    off = intend(complete, GRPO, version=0, bound=1)
    assert names(*off.groups) == [{"t0-m0", "t0-m1"}, {"t1-m0", "t1-m1"}]
    assert (off.num_dropped, off.num_unusable) == (0, 2), "one of them had nothing to be compared with"
    drop = intend(complete, structs_replaced(dynamic_sampling="drop"), version=0, bound=1)
    assert names(*drop.groups) == [{"t1-m0", "t1-m1"}]
    assert (drop.num_dropped, drop.num_unusable) == (3, 0)


def structs_replaced(**changes: object) -> ObjectiveConfig:
    return ObjectiveConfig(adv_estimator="grpo", loss_type="decoupled", group_size=2, **changes)  # type: ignore[arg-type]


def test_a_stale_member_is_left_out_of_its_group() -> None:
    complete = [Group((member(0, 0, 1.0, version=2), member(0, 1, 0.0, version=4), member(0, 2, 0.0, version=4)))]
    found = intend(complete, structs_replaced(dynamic_sampling="drop"), version=4, bound=1)
    assert names(*found.groups) == [{"t0-m1", "t0-m2"}], "what varies is decided by judgements alone, and the group stays"
    assert (found.num_stale, found.num_dropped) == (1, 0)
    assert intend(complete, GRPO, version=4, bound=None).num_stale == 0
    old = intend(complete, GRPO, version=9, bound=1)
    assert (old.groups, old.num_stale, old.num_unusable) == ((), 3, 1)


def test_a_group_of_which_one_is_left_has_nothing_to_compare_it_with() -> None:
    complete = [Group((member(0, 0, 1.0, version=2), member(0, 1, 0.0, version=4)))]
    found = intend(complete, GRPO, version=4, bound=1)
    assert (found.groups, found.num_stale, found.num_unusable) == ((), 1, 1)
    alone = ObjectiveConfig(adv_estimator="reinforce_plus_plus", loss_type="clipped", group_size=2)
    assert names(*intend(complete, alone, version=4, bound=1).groups) == [{"t0-m1"}], "it compares with the whole batch"


def test_a_member_that_a_discarded_version_played_is_left_out_of_its_group() -> None:
    memory = GuardMemory(discarded=((3, 4),))
    complete = [Group((member(0, 0, 1.0, version=5), member(0, 1, 0.0, version=4), member(0, 2, 0.0, version=5)))]
    found = intend(complete, GRPO, version=5, bound=1, plays_for=memory.plays_for)
    assert names(*found.groups) == [{"t0-m0", "t0-m2"}]
    assert (found.num_collapsed, found.num_stale) == (1, 0)


def test_remax_waits_for_its_greedy_member_and_cannot_do_without() -> None:
    groups = Groups(num_members(REMAX))
    assert groups.arrive(member(0, 0)) is None
    complete = groups.arrive(member(0, 1, 0.0, greedy=True))
    assert complete is not None
    found = intend([complete], REMAX, version=0, bound=0)
    assert names(*found.groups) == [{"t0-m0", "t0-m1"}]
    assert [one.episode for one in found.trained] == ["train-r0000-t0-m0"], "a baseline is not trained on"
    without = structs.replace(member(0, 1, None, greedy=True))
    assert intend([Group((member(0, 0), without))], REMAX, version=0, bound=0).num_unusable == 1
    alone = Group((member(0, 1, greedy=True),))
    assert intend([alone], REMAX, version=0, bound=0).num_unusable == 1


def measured(objective: ObjectiveConfig, size: int, rewards: list[tuple[float | None, ...]]) -> int:
    """Judgements of one iteration, when the groups come one after the other."""
    refilled, groups = Refilled(size, objective), Groups(num_members(objective))
    for group, given in enumerate(rewards):
        for index, reward in enumerate(given):
            if refilled.is_last(groups.arrive(member(group, index, reward))):
                return group * num_members(objective) + index + 1
    raise AssertionError("the iteration waits for more")


def test_refill_goes_on_until_enough_groups_vary() -> None:
    refill = structs_replaced(dynamic_sampling="refill")
    assert measured(refill, 4, [(1.0, 0.0), (0.0, 1.0)]) == 4
    assert measured(refill, 4, [(1.0, 0.0), (1.0, 1.0), (0.0, None), (0.0, 1.0)]) == 8


def test_refill_has_an_end() -> None:
    refill = structs_replaced(dynamic_sampling="refill", max_refill=1.9)
    assert measured(refill, 4, [(1.0, 1.0)] * 9) == 8, "7.6 episodes, in whole groups"


def test_a_group_of_which_some_were_blocked_is_trained_on_without_them_and_counted() -> None:
    objective = ObjectiveConfig(adv_estimator="grpo", loss_type="decoupled", group_size=8)
    rewards = [1.0, 0.0, None, 1.0, None, 0.0, 1.0, 0.0]
    groups = Groups(num_members(objective))
    complete = [groups.arrive(member(0, index, reward)) for index, reward in enumerate(rewards)]
    whole = [groups.arrive(member(1, index, float(index % 2))) for index in range(8)]
    alone = [groups.arrive(member(2, index, 1.0 if index == 0 else None)) for index in range(8)]
    found = intend([group for group in (*complete, *whole, *alone) if group is not None], objective, version=0, bound=None)
    assert [len(group.members) for group in found.groups] == [6, 8]
    assert all(one.reward is not None for one in found.trained)
    assert (found.num_unscored, found.num_short, found.num_unusable) == (9, 1, 1)
