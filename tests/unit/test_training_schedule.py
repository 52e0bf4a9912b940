"""Which training slots come next, and which sites are left out, by value."""

from dataclasses import replace

import pytest

from bus.blocklist import Blocklist
from schemas.env_config import EnvConfig
from schemas.feeder_config import FeederConfig
from schemas.ids import EpisodeId, PolicyVersion, TaskId
from schemas.messages import Judgement, Outcome, SiteBlock, Split, Trajectory, Verdict
from schemas.objective_config import ObjectiveConfig
from tests.builders import RUBRIC, RUN
from tests.unit.test_curriculum import SPEC
from trainer.feeding.attempts import Attempts
from trainer.feeding.blocked_sites import TrainingSites
from trainer.feeding.curriculum import Slot, episode_of, task_of
from trainer.feeding.samplers import Sampler
from trainer.feeding.samplers.adaptive import AdaptiveSampler
from trainer.feeding.samplers.uniform import UniformSampler
from trainer.feeding.training_plan import TrainingPlan
from trainer.feeding.training_schedule import TrainingSchedule

SPECS = tuple(replace(SPEC, task=TaskId(f"t{index}"), website=f"https://site-{index % 3}.org/{index}") for index in range(9))
SAMPLER = UniformSampler(SPECS, seed=5)
SITES = TrainingSites(SPECS)
NONE: frozenset[str] = frozenset()


def schedule(
    sampler: Sampler = SAMPLER, *, num_members: int = 1, greedy_last: bool = False, attempts: Attempts | None = None
) -> TrainingSchedule:
    known = attempts or Attempts()
    return TrainingSchedule(sampler, SPECS, SITES.by_task, known, num_members=num_members, greedy_last=greedy_last)


def everything(count: int, num_members: int = 1) -> list[Slot]:
    return schedule(num_members=num_members).take(count, blocked=NONE)


def episodes(slots: list[Slot]) -> set[EpisodeId]:
    return {episode_of(slot, Split.TRAIN, demonstrate=False) for slot in slots}


def test_without_blocks_it_is_the_samplers_order() -> None:
    ours = schedule()
    taken = ours.take(4, blocked=NONE) + ours.take(16, blocked=NONE)
    assert [slot.index for slot in taken] == list(range(20))
    assert [slot.spec for slot in taken] == [spec for index in range(3) for spec in SAMPLER.round(index, {})][:20]
    assert [slot.round for slot in taken] == [0] * 9 + [1] * 9 + [2] * 2


def test_the_name_of_an_order_stays_what_it_is() -> None:
    """Runs that go on compare it with what they remember."""
    names = [
        TrainingPlan(FeederConfig(), EnvConfig(), ObjectiveConfig(), tasks, SITES.by_task).place.order
        for tasks in (SPECS, SPECS[:1])
    ]
    assert names == ["af0a93d0b75aa47f", "f63b3b4ccfbd8fc0"]


def test_a_blocked_slot_is_skipped_and_the_others_stay_where_they_were() -> None:
    ours = schedule()
    taken = ours.take(6, blocked={"site-1.org"})
    every = everything(30)
    free = [slot for slot in every if "site-1" not in slot.spec.website]
    assert taken == free[:6]
    later = ours.take(9, blocked=NONE)
    assert later == every[taken[-1].index + 1 :][:9], "what was skipped comes in the next round, not in a flood"


def test_a_call_looks_at_a_bounded_number_of_slots() -> None:
    ours = schedule()
    assert ours.take(1, blocked=set(SITES.by_task.values())) == []
    [slot] = ours.take(1, blocked=NONE)
    assert slot.index == 10_000


@pytest.mark.parametrize("num_admitted", [0, 3, 257, 1000])
@pytest.mark.parametrize("num_members", [1, 4])
def test_whoever_takes_over_goes_on_behind_the_last_admission(num_admitted: int, num_members: int) -> None:
    """A site was blocked for the first half."""
    before, after = schedule(num_members=num_members), schedule(num_members=num_members)
    before.take(num_admitted // 2, blocked={"site-2.org"})
    before.take(num_admitted - num_admitted // 2, blocked=NONE)
    after.resume(before.memory())
    blocked = {"site-0.org"}
    assert after.take(40, blocked=blocked) == before.take(40, blocked=blocked), "a group that was begun is finished"


def test_another_order_begins_with_a_round_that_nobody_has_begun() -> None:
    before = schedule()
    taken = before.take(13, blocked=NONE)
    after = TrainingSchedule(UniformSampler(SPECS[::-1], seed=6), SPECS, SITES.by_task, Attempts(), order="another")
    after.resume(before.memory())
    later = after.take(20, blocked=NONE)
    assert {slot.round for slot in taken} == {0, 1}
    assert {slot.round for slot in later} == {2, 3, 4}
    assert later[0].index == taken[-1].index + 1


def test_the_members_of_a_group_follow_each_other() -> None:
    taken = schedule(num_members=3, greedy_last=True).take(30, blocked=NONE)
    assert [slot.spec for slot in taken[::3]] == [slot.spec for slot in everything(10)]
    assert [slot.member for slot in taken] == [0, 1, 2] * 10
    assert [slot.greedy for slot in taken] == [False, False, True] * 10
    assert [slot.round for slot in taken] == [0] * 27 + [1] * 3, "no group lies in two rounds"
    assert len(episodes(taken)) == 30


def test_a_group_is_not_begun_in_its_middle_nor_left_there() -> None:
    """Its site is freed behind its first member, or blocked."""
    ours = schedule(num_members=4)
    first = ours.take(2, blocked=NONE)
    site = SITES.by_task[first[0].spec.task]
    taken = first + ours.take(6, blocked={site})
    assert [slot.member for slot in taken] == [0, 1, 2, 3] * 2
    assert taken[2].spec == first[0].spec, "what was begun is finished"
    assert SITES.by_task[taken[4].spec.task] != site


def test_a_site_that_is_freed_between_two_calls_frees_no_rest_of_a_group() -> None:
    ours = schedule(num_members=3)
    assert ours.take(1, blocked=set(SITES.by_task.values())) == []
    taken = ours.take(3, blocked=NONE)
    assert [(slot.index, slot.member) for slot in taken] == [(10_002, 0), (10_003, 1), (10_004, 2)]


class TestAdaptive:
    SAMPLER = AdaptiveSampler(SPECS, seed=5, per_round=4)

    def test_a_round_is_drawn_by_the_results_of_the_moment_it_is_begun(self) -> None:
        attempts = Attempts()
        ours = schedule(self.SAMPLER, attempts=attempts)
        first = ours.take(2, blocked=NONE)
        attempts.add(7, judgement(first[0], success=True))
        rest = ours.take(2, blocked=NONE)
        assert [slot.spec for slot in first + rest] == list(self.SAMPLER.round(0, Attempts().history(SPECS)))
        second = ours.take(4, blocked=NONE)
        assert [slot.spec for slot in second] == list(self.SAMPLER.round(1, attempts.history(SPECS)))
        assert [slot.results_seq for slot in first + rest + second] == [0] * 4 + [7] * 4

    def test_whoever_takes_over_plays_the_round_that_was_drawn(self) -> None:
        """Though it knows of more results by then."""
        attempts = Attempts()
        before = schedule(self.SAMPLER, attempts=attempts)
        taken = before.take(4, blocked=NONE)
        for seq, slot in enumerate(taken, start=1):
            attempts.add(seq, judgement(slot, success=seq % 2 == 0))
        taken += before.take(2, blocked=NONE)
        attempts.add(5, judgement(taken[4], success=True))
        after = schedule(self.SAMPLER, attempts=attempts)
        after.resume(before.memory())
        rest = after.take(6, blocked=NONE)
        assert rest[:2] == before.take(2, blocked=NONE)
        assert [slot.results_seq for slot in rest] == [4, 4, 5, 5, 5, 5]
        assert len(episodes(taken + rest)) == 12


def judgement(slot: Slot, *, success: bool) -> Judgement:
    task = task_of(slot, run=RUN, split=Split.TRAIN, env=EnvConfig(), feeder=FeederConfig(), version=PolicyVersion(0))
    verdict = Verdict.SUCCESS if success else Verdict.FAILURE
    played = Trajectory(task=task, attempt=1, outcome=Outcome.DONE)
    return Judgement(
        episode=task.episode,
        group=task.group,
        split=Split.TRAIN,
        rubric=RUBRIC,
        verdict=verdict,
        reward=float(success),
        trajectory=played,
    )


def blocklist(**until: float) -> Blocklist:
    found = Blocklist()
    for site, end in until.items():
        name = f"{site.replace('_', '-')}.org"
        found.apply(SiteBlock(site=name, until=end), 0.0)
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
