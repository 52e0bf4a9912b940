"""A short form of `benchmarks/provider_drill.py`: no session is left over, no episode lost, no failure rewarded."""

from pathlib import Path

import pytest

from tests.deadlines import HANGS_S
from tests.support.browsers.scripted_provider import KEY
from tests.support.drills.provider_drill import Part, drill, provider_of

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


async def test_sessions_that_fail_held_by_workers_that_are_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSERBASE_API_KEY", KEY)
    part = Part("doubles", 60, workers=2, slots=4, room=6, kill_every_s=2.0, lives_s=0.3)
    async with provider_of(part, tmp_path) as provider:
        row = await drill(part, provider, tmp_path / "run", swept_s=HANGS_S)
    assert row.kills > 1
    assert row.sessions > part.episodes
    assert (row.lost, row.rewarded_failures, row.orphans) == (0, 0, 0)
