"""Where a trainer is, told from what can be seen of it."""

import pytest

from tests.support.drills.trainer_drill import Wanted
from tests.support.drills.trainer_moments import Moment, Phase

RESUMED, COLLECTED, PUBLISHED = "training_opened", "batch_collected", "version_published"


@pytest.mark.parametrize(
    ("events", "writes", "written", "announced", "phase"),
    [
        ([], False, 0, 3, Phase.LOADING),
        ([RESUMED], False, 0, 3, Phase.WAITING),
        ([RESUMED, COLLECTED, "mismatch_not_measured"], False, 0, 3, Phase.TRAINING),
        ([RESUMED, COLLECTED], True, 0, 3, Phase.SAVING),
        ([RESUMED, COLLECTED], False, 4, 3, Phase.WRITTEN),
        ([RESUMED, COLLECTED, PUBLISHED], False, 4, 4, Phase.WAITING),
    ],
)
def test_phases(events: list[str], writes: bool, written: int, announced: int, phase: Phase) -> None:
    assert Moment(events, writes, written, announced).phase is phase


def test_twenty_kills_fall_into_every_phase_four_times_and_never_first_into_loading() -> None:
    for seed in range(20):
        wanted = Wanted.drawn(20, seed)
        assert {phase: sum(moment.phase is phase for moment in wanted) for phase in Phase} == dict.fromkeys(Phase, 4)
        assert wanted[0].phase is not Phase.LOADING
    assert Wanted.drawn(20, 1) == Wanted.drawn(20, 1) != Wanted.drawn(20, 2)
