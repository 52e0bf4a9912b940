"""Which judgements each version is to consume, where groups without variance are replaced."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from bus.memory import MemoryBus
from ops.audit.feed import Feed, Taken
from ops.audit.ledger import Ruled, read_ledger
from ops.audit.promises import miscounted, unused
from schemas.ids import EpisodeId, GroupId, PolicyVersion
from schemas.messages import Checkpoint, Verdict
from schemas.objective_config import ObjectiveConfig
from tests import builders
from tests.support.training.learning_world import Recorder, play_random, train
from tests.support.training.trainer_world import SUBJECTS, judge, member_task
from trainer.episodes.passes import Passes

REFILL = ObjectiveConfig(adv_estimator="grpo", loss_type="clipped", group_size=2, dynamic_sampling="refill", max_refill=2.0)
FEED = Feed(rubric="r", batch=4, objective=REFILL)


def _ruled(*rewards: tuple[str, float | None]) -> list[Ruled]:
    """Judgements in their order: group and reward; None: nobody came to a verdict."""
    found = []
    for seq, (group, reward) in enumerate(rewards, 1):
        found.append(
            Ruled(
                seq=10 * seq,
                time_s=0.0,
                episode=EpisodeId(f"{group}-{seq}"),
                group=GroupId(group),
                rubric="r",
                verdict=Verdict.ERROR if reward is None else Verdict.SUCCESS if reward else Verdict.FAILURE,
                reward=reward,
                finished=True,
                trains=True,
                demonstrates=False,
                digest="",
            )
        )
    return found


MIXED = _ruled(
    ("a", 1.0), ("b", 1.0), ("a", 1.0), ("c", None),  # a teaches nothing
    ("b", 0.0), ("c", 0.0), ("d", 0.0), ("e", 1.0),  # b does, c does not
    ("d", 1.0), ("e", 1.0), ("f", 1.0), ("f", 1.0),  # with d there are two that do; then none
    ("g", 1.0), ("g", 1.0), ("h", 0.0), ("h", 0.0),  # four in vain are as many as allowed
)  # fmt: skip


def _taken(ruled: Sequence[Ruled]) -> list[Taken]:
    return list(islice(FEED.taken(ruled), 3))


def test_an_iteration_goes_on_until_enough_groups_vary_or_enough_are_complete() -> None:
    first, second, third = _taken(MIXED)
    assert (first.seqs, first.is_whole) == (tuple(range(10, 100, 10)), True)
    assert (second.seqs, second.is_whole) == (tuple(range(100, 170, 10)), True)
    assert (third.seqs, third.is_whole) == ((), False)


def test_what_is_there_of_an_iteration_that_cannot_be_made_yet_is_not_whole() -> None:
    (first, *_) = _taken(MIXED[:8])
    assert (len(first.seqs), first.is_whole) == (8, False)


def _versions(*consumed: tuple[int, int]) -> list[Checkpoint]:
    """Version after version: trajectories in all, and the last judgement."""
    return [
        Checkpoint(
            run=builders.RUN,
            version=PolicyVersion(version),
            uri="file:///v",
            files=(),
            parent=PolicyVersion(version - 1) if version else None,
            trainer_step=version,
            num_trajectories=count,
            judged_seq=seq,
        )
        for version, (count, seq) in enumerate([(0, 0), *consumed])
    ]


def test_versions_of_uneven_size_are_no_fault() -> None:
    assert miscounted(_versions((9, 90), (16, 160)), MIXED, FEED) == ()
    assert unused(_versions((9, 90), (16, 160)), MIXED, FEED) == ()


def test_a_version_that_took_too_few_or_too_many_is_one() -> None:
    assert miscounted(_versions((8, 80)), MIXED, FEED) == ("version 1 has consumed 8 trajectories, not 9",)
    assert miscounted(_versions((9, 100)), MIXED, FEED) == ("version 1 ends at judgement 100; its last one stands at 90",)
    assert miscounted(_versions((9, 80)), MIXED[:8], FEED) == (
        "version 1 ends at judgement 80; its last one stands at nowhere",
    )


def test_a_whole_iteration_that_nobody_made_is_unused() -> None:
    assert unused(_versions((9, 90)), MIXED, FEED) == ("7 judgements that no version consumed",)
    assert unused(_versions((9, 90)), MIXED[:15], FEED) == ()


def test_a_pass_ends_with_what_is_left_and_the_next_one_begins_anew() -> None:
    feed = replace(FEED, passes=Passes(15))
    taken = [(each.seqs, each.is_whole) for each in islice(feed.taken(MIXED), 5)]
    first, second = tuple(range(10, 100, 10)), tuple(range(100, 160, 10))
    assert taken == [(first, True), (second, True)] * 2 + [(first, True)]
    half = list(islice(feed.taken(MIXED[:12]), 2))
    assert [(len(each.seqs), each.size, each.is_whole) for each in half] == [(9, 9, True), (3, 4, False)]


DROP = replace(REFILL, dynamic_sampling="drop")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("objective", "num_stored", "ends"),
    [
        (REFILL, 16, [9, 16, 25, 32, 41]),
        (REFILL, 15, [9, 15, 24, 30, 39]),
        (REFILL, 9, [9, 18, 27, 36, 45]),
        (REFILL, 4, [4, 8, 12, 16, 20]),
        (REFILL, 0, [9, 16]),
        (DROP, 15, [4, 8, 12, 15, 19]),
    ],
)
async def test_a_trainer_takes_what_is_recounted(
    objective: ObjectiveConfig, num_stored: int, ends: list[int], tmp_path: Path
) -> None:
    bus, draw, members = MemoryBus(SUBJECTS), random.Random(0), dict[str, int]()
    for ruled in MIXED:
        members[ruled.group] = member = members.get(ruled.group, -1) + 1
        await judge(bus, await play_random(bus, member_task(ord(ruled.group), member), draw), ruled.reward)
    await train(bus, tmp_path, Recorder(), objective, num_iterations=len(ends), batch=4, num_stored=num_stored)
    ledger = await read_ledger(bus, SUBJECTS)
    assert [each.num_trajectories for each in ledger.checkpoints] == [0, *ends]
    feed = Feed(rubric=builders.RUBRIC, batch=4, passes=Passes(num_stored or None), objective=objective)
    assert miscounted(ledger.checkpoints, ledger.ruled, feed) == ()
