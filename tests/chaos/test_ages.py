"""Those who decide what is begun and what is trained on come back after every age has passed: real processes, a real server,
and ages of seconds."""

from pathlib import Path

import anyio
import pytest

from ops.chaos.days import play_days
from ops.chaos.scaled_run import ScaledSettings, names_of, scaled_run
from schemas.messages import Role
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
_AGES = ("bus_config.episodes_max_age_s=10", "bus_config.results_max_age_s=20")
"""Longer than an episode and every lease, as ages are in any run."""


@pytest.mark.parametrize("age", ["chains", "results"])
@pytest.mark.parametrize("role", [Role.FEEDER, Role.TRAINER])
async def test_a_role_that_was_away_while_records_aged_out_goes_on(role: Role, age: str, tmp_path: Path) -> None:
    """Nothing is begun twice, what was admitted ends once, and versions go on."""
    async with scaled_run(ScaledSettings(folder=tmp_path / "run", overrides=_AGES)) as run:
        assert await run.until(lambda: len(run.passing.versions) > 2)
        await run.supervisor.stop(*names_of(role))
        with anyio.fail_after(HANGS_S):
            await run.until_aged_out(run.subjects.episodes(0) if age == "chains" else run.subjects.trajectories)
            if age == "results":
                await run.until_aged_out(run.subjects.judged)
        before = len(run.passing.versions)
        for name in names_of(role):
            run.start(role, name)
        assert await run.until(lambda: len(run.passing.versions) > before + 2, limit_s=1200.0), "versions go on"
        assert [fault for fault in run.passing.proof() if "never" not in fault] == []


async def test_days_pass_with_a_failover_each(tmp_path: Path) -> None:
    settings = ScaledSettings(folder=tmp_path / "run", day_s=2.0, seed=2)
    report = await play_days(settings, num_days=4)
    assert report.holds, report.as_json()
    assert len(report.days) == 4
    assert report.days[-1].version > report.days[0].version
