"""A trainer is killed in one run at chosen moments: weights, optimizer and state are those of an undisturbed run."""

from pathlib import Path

import pytest

from tests.support.drills.trainer_drill import Wanted
from tests.support.drills.trainer_kills import compare
from tests.support.drills.trainer_moments import Phase

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.integration,
    # Of the process that trainers are forked from.
    pytest.mark.filterwarnings("ignore:.*resource_tracker.*:UserWarning"),
]


async def test_three_kills_change_nothing_and_use_nothing_twice(tmp_path: Path) -> None:
    wanted = [Wanted(Phase.WRITTEN, 1, 0.0), Wanted(Phase.LOADING, 0, 0.5), Wanted(Phase.TRAINING, 0, 0.5)]

    outcome = await compare(tmp_path, "cloning", wanted, num_versions=4, limit_s=1200.0)

    assert len(outcome.kills) == 3
    assert outcome.different == []
    assert outcome.num_used_twice == 0
    assert [checkpoint.version for checkpoint in outcome.disturbed] == list(range(5))
    assert outcome.disturbed[-1].num_trajectories == 24
