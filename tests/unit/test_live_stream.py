"""What one reader of the live page is told: everything first, then differences, and never more than it takes."""

import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from bus.memory import MemoryBus
from bus.ports import Record
from bus.server_time import ServerClock
from ops.monitor.snapshot import merged
from ops.monitor.state import MonitorState
from ops.web.live import Live
from schemas.ids import EpisodeId
from schemas.messages import EpisodeStart
from tests.builders import WORKER, task
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.runs.live_world import CONFIG

pytestmark = [pytest.mark.anyio]


async def told(events: AsyncIterator[bytes]) -> tuple[str, dict[str, Any]]:
    """The next event's name and what it holds."""
    lines = dict(line.split(": ", 1) for line in (await anext(events)).decode().strip().splitlines())
    return lines["event"], json.loads(lines["data"])


async def test_a_slow_reader_gets_one_difference_of_all_that_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.web.live._EVERY_S", 0.001)
    state = MonitorState(CONFIG.monitor_config, began_at=0.0)
    live = Live(
        SimpleNamespace(state=state, alerts=(), missing=("JUDGED",), now=ServerClock()), MemoryBus(SUBJECTS), SUBJECTS, CONFIG
    )
    one = task("t1")
    state.heard(Record("", "x", 0, one), 1.0)
    events = live._updates()
    event, whole = await told(events)
    assert (event, whole["missing"], list(whole["cells"])) == ("whole", ["JUDGED"], [one.episode])
    # While nothing is asked for, nothing is made: a thousand changes later there is one update, not a thousand.
    for attempt in range(1, 1001):
        state.heard(Record("", "x", 0, EpisodeStart(episode=one.episode, attempt=attempt, worker=WORKER)), 2.0)
    state.heard(Record("", "x", 0, task("t2")), 2.0)
    state.cells.drop(EpisodeId("never"))
    event, update = await told(events)
    assert event == "update"
    assert "workers" not in update["sections"]
    cells = merged(merged({}, whole), update)["cells"]
    assert {name: (cell["attempt"], cell["phase"]) for name, cell in cells.items()} == {
        one.episode: (1000, "opening"),
        task("t2").episode: (0, "queued"),
    }
    live.end()
    with anyio.fail_after(HANGS_S), pytest.raises(StopAsyncIteration):
        await anext(events)
