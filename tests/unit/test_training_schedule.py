"""Which training slots come next, and which sites are left out, by value."""

from dataclasses import replace

import pytest

from bus.blocklist import Blocklist
from schemas.ids import EpisodeId, TaskId
from schemas.messages import SiteBlock, Split
from tests.unit.test_curriculum import SPEC
from trainer.blocked_sites import TrainingSites
from trainer.curriculum import Slot, UniformSampler, episode_of
from trainer.training_schedule import TrainingSchedule

SPECS = tuple(replace(SPEC, task=TaskId(f"t{index}"), website=f"https://site-{index % 3}.org/{index}") for index in range(9))
SAMPLER = UniformSampler(SPECS, seed=5)
SITES = TrainingSites(SPECS)
NONE: frozenset[str] = frozenset()


def schedule(sampler: UniformSampler = SAMPLER) -> TrainingSchedule:
    return TrainingSchedule(sampler, TrainingSites(sampler.specs).by_task, demonstrate=False)


def episodes(slots: list[Slot]) -> set[EpisodeId]:
    return {episode_of(slot, Split.TRAIN, demonstrate=False) for slot in slots}


def test_without_blocks_it_is_the_samplers_order() -> None:
    ours = schedule()
    taken = ours.take(4, admitted=(), blocked=NONE) + ours.take(16, admitted=(), blocked=NONE)
    assert taken == [SAMPLER.slot(index) for index in range(20)]


def test_a_blocked_slot_is_skipped_and_the_others_stay_where_they_were() -> None:
    ours = schedule()
    taken = ours.take(6, admitted=(), blocked={"site-1.org"})
    every = [SAMPLER.slot(index) for index in range(30)]
    free = [slot for slot in every if "site-1" not in slot.spec.website]
    assert taken == free[:6]
    later = ours.take(9, admitted=(), blocked=NONE)
    assert later == every[taken[-1].index + 1 :][:9], "what was skipped comes in the next round, not in a flood"


def test_what_is_admitted_is_passed_over() -> None:
    first = schedule().take(5, admitted=(), blocked=NONE)
    assert schedule().take(3, admitted=episodes(first), blocked=NONE) == [SAMPLER.slot(index) for index in (5, 6, 7)]


def test_a_call_looks_at_a_bounded_number_of_slots() -> None:
    ours = schedule()
    everything = set(SITES.by_task.values())
    assert ours.take(1, admitted=(), blocked=everything) == []
    [slot] = ours.take(1, admitted=(), blocked=NONE)
    assert slot.index == 10_000


@pytest.mark.parametrize("num_admitted", [0, 3, 257, 1000])
def test_whoever_takes_over_goes_on_near_the_last_admission(num_admitted: int) -> None:
    """A site was blocked for the first half; three of the last sixty-four admissions did not happen."""
    before = schedule()
    taken = before.take(num_admitted // 2, admitted=(), blocked={"site-2.org"})
    taken += before.take(num_admitted - len(taken), admitted=(), blocked=NONE)
    lost = taken[-40::15]
    admitted = episodes([slot for slot in taken if slot not in lost])
    after = schedule()
    after.resume(admitted)
    again = after.take(400, admitted=admitted, blocked=NONE)
    assert not episodes(again) & admitted
    assert [slot for slot in lost if slot not in again] == []
    if num_admitted == 1000:
        assert min(slot.index for slot in again) == lost[0].index, "nothing that was skipped long ago"


def test_episodes_of_another_file_do_not_hold_it_up() -> None:
    ours = schedule()
    ours.resume({EpisodeId(f"train-r0000-gone{index}-m0") for index in range(300)})
    assert ours.take(1, admitted=(), blocked=NONE)[0].index == 0


def blocklist(**until: float) -> Blocklist:
    found = Blocklist()
    for site, end in until.items():
        name = f"{site.replace('_', '-')}.org"
        found.apply(SiteBlock(site=name, until=end))
    return found


def test_only_sites_of_the_file_are_counted() -> None:
    left_out = SITES.left_out(blocklist(site_0=10.0, elsewhere=10.0), 5.0)
    assert set(left_out.blocks) == {"site-0.org"}
    assert not left_out.everything


def test_when_all_are_blocked_it_says_until_when() -> None:
    blocks = blocklist(site_0=10.0, site_1=7200.0, site_2=9.0)
    left_out = SITES.left_out(blocks, 5.0)
    assert left_out.everything
    assert left_out.sentence() == "all 3 training sites are blocked until 1970-01-01 00:00:09 UTC"
    assert not SITES.left_out(blocks, 9.0).everything
    one = TrainingSites(SPECS[:1]).left_out(blocks, 5.0)
    assert one.sentence() == "the only training site, site-0.org, is blocked until 1970-01-01 00:00:10 UTC"


def test_without_tasks_nothing_is_blocked() -> None:
    assert not TrainingSites(()).left_out(Blocklist(), 0.0).everything
