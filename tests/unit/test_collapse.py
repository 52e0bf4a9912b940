"""The guard against collapse, by value: what it takes for far worse, which version is good, and what it remembers."""

from collections.abc import Sequence

import msgspec
import pytest

from schemas.ids import PolicyVersion
from schemas.messages import Judgement
from schemas.trainer_config import TrainerConfig
from tests import builders
from trainer.collapse import CollapseGuard, GuardMemory, Health

CONFIG = TrainerConfig(guard_batches=2, guard_parse_rate=0.5, guard_success=0.25, guard_lr_factor=0.5, guard_max_returns=1)
GUARD = CollapseGuard(CONFIG, online=True)


def health(parsed: int, successes: int = 50, *, played: int = 0, size: int = 100) -> Health:
    return Health(num_steps=size, num_parsed=parsed, num_scored=size, num_successes=successes, played=played)


def after(batches: Sequence[Health], *, first: int = 0, memory: GuardMemory | None = None) -> GuardMemory:
    memory = memory or GuardMemory()
    for version, batch in enumerate(batches, first):
        memory = GUARD.judge(memory, batch, version)
    return memory


def test_a_start_that_parses_badly_is_no_collapse() -> None:
    memory = after([health(20), health(22), health(19)])
    assert not GUARD.collapsed(memory)
    assert memory.best_parse_rate == 0.22


def test_it_takes_several_bad_batches_in_a_row() -> None:
    assert not GUARD.collapsed(after([health(90), health(10)]))
    assert not GUARD.collapsed(after([health(90), health(10), health(88), health(10)]))
    assert GUARD.collapsed(after([health(90), health(10), health(10)]))


def test_success_alone_can_collapse() -> None:
    assert GUARD.collapsed(after([health(90, 80), health(90, 2), health(90, 2)]))
    assert not GUARD.collapsed(after([health(90, 80), health(90, 15), health(90, 15)])), "within chance of a quarter of 0.8"


def test_few_episodes_prove_nothing() -> None:
    few = Health(num_steps=0, num_parsed=0, num_scored=3, num_successes=0, played=1)
    assert after([health(90, 80), few, few]).num_suspect == 0, "no step was played"
    short = Health(num_steps=4, num_parsed=4, num_scored=4, num_successes=0, played=1)
    assert after([health(90, 80), short, short]).num_suspect == 0, "none of 4 is within chance of 0.2"


def test_a_version_is_good_when_what_it_played_was() -> None:
    memory = after([health(90), health(90), health(90, played=0)])
    assert (memory.good, memory.candidate) == (0, 1), "version 1 is kept until its own episodes come"
    memory = after([health(90, played=1)], first=3, memory=memory)
    assert (memory.good, memory.candidate) == (1, 3)
    assert memory.needed == {1, 3}
    memory = after([health(10, played=3), health(10, played=4)], first=4, memory=memory)
    assert memory.good == 1


def test_without_staleness_the_present_version_is_good_at_once() -> None:
    memory = after([health(90, played=0), health(90, played=1), health(90, played=2)])
    assert (memory.good, memory.candidate) == (2, 2)


def test_what_a_return_leaves_behind() -> None:
    memory = GUARD.returned(after([health(90), health(90), health(90, played=1), health(9), health(9)]), 5)
    assert (memory.good, memory.candidate, memory.num_suspect) == (6, 6, 0)
    assert memory.rate_factor == 0.5
    assert memory.discarded == ((2, 5),)
    assert memory.best_parse_rate == 0.9
    assert not GUARD.may_return(memory)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(memory), type=GuardMemory) == memory


def test_a_run_is_compared_with_what_it_was_of_late() -> None:
    early = after([health(90, 80), *[health(90, 25)] * 99])
    assert GUARD.collapsed(after([health(90, 2)] * 2, memory=early))
    later = after([health(90, 25)], memory=early)
    assert not GUARD.collapsed(after([health(90, 2)] * 2, memory=later)), "within chance of a quarter of 0.25"


def test_what_goes_well_for_long_takes_a_return_back() -> None:
    returned = GUARD.returned(after([health(90), health(9), health(9)]), 2)
    well = after([health(90)] * 50 + [health(9)] + [health(90)] * 49, memory=returned)
    assert (GUARD.may_return(well), well.rate_factor) == (False, 0.5)
    well = after([health(90)], memory=well)
    assert (GUARD.may_return(well), well.rate_factor) == (True, 1.0)
    again = GUARD.returned(well, 103)
    assert (GUARD.may_return(again), again.rate_factor) == (False, 0.5)
    assert not GUARD.may_return(after([health(90)] * 99, memory=again)), "counted anew behind every return"


OFFLINE, OFF = CollapseGuard(CONFIG, online=False), CollapseGuard(TrainerConfig(guard_batches=0), online=True)


@pytest.mark.parametrize("guard", [OFFLINE, OFF])
def test_a_guard_that_is_off_says_nothing(guard: CollapseGuard) -> None:
    memory = GuardMemory(recent=((1.0, 1.0),), num_suspect=9)
    assert guard.judge(memory, health(0), 3) == memory
    assert not guard.collapsed(memory)


def test_episodes_of_versions_that_were_returned_from_do_not_count() -> None:
    memory = GuardMemory(discarded=((2, 5),))
    batch = [_played(1), _played(2, parsed=False), _played(5, parsed=False), _played(6), _played(7)]
    assert [memory.plays_for(judgement.trajectory) for judgement in batch] == [True, False, False, True, True]
    found = Health.of(batch, memory)
    assert (found.num_steps, found.num_parsed, found.num_scored, found.played) == (6, 6, 3, 6)


def _played(version: int, *, parsed: bool = True) -> Judgement:
    trajectory = msgspec.structs.replace(
        builders.trajectory(builders.task(f"t{version}"), num_steps=2),
        versions=(PolicyVersion(version),) * 2,
        num_unparsed=0 if parsed else 2,
    )
    return builders.judgement(trajectory)
