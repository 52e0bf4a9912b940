"""Whose script is ended: that of a page that runs, and answers nobody."""

from types import SimpleNamespace
from typing import cast

import anyio
import pytest

from browser_workers.chromium.calls import Json, NoAnswer
from browser_workers.chromium.endless_scripts import EndlessScripts
from browser_workers.chromium.page_events import PageEvents
from browser_workers.chromium.windows import Windows
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio
TIMEOUT_S = 0.4
NUM_LOOKS = 12


class Tab:
    """One whose main thread has used `used_s` seconds more at each look. It answers when its script is ended."""

    def __init__(self, used_s: float) -> None:
        self.loading = SimpleNamespace(navigation=None)
        self.enough = anyio.Event()
        """It was ended, or looked at often."""
        self.num_looks = 0
        self._ended = anyio.Event()
        self._used_s = used_s

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    async def prepare(self) -> None: ...

    async def send(self, method: str, params: Json | None = None, *, timeout_s: float) -> Json:
        if method == "Runtime.evaluate":
            with anyio.move_on_after(timeout_s):
                await self._ended.wait()
                return {}
            raise NoAnswer("no answer")
        if method == "Runtime.terminateExecution":
            self._ended.set()
            self.enough.set()
            return {}
        self.num_looks += 1
        if self.num_looks == NUM_LOOKS:
            self.enough.set()
        return {"metrics": [{"name": "Nodes", "value": 7}, {"name": "ThreadTime", "value": self.num_looks * self._used_s}]}


@pytest.mark.parametrize(
    ("used_s", "ended"),
    [(0.1, True), (0.002, True), (0.0, False)],
    ids=["runs all the time", "gets little of a full machine", "waits for its turn, or its site"],
)
async def test_only_a_page_that_runs_has_its_script_ended(used_s: float, ended: bool) -> None:
    tab, said = Tab(used_s), list[str]()
    windows = cast(Windows, SimpleNamespace(front=tab, tabs=[tab]))
    events = cast(PageEvents, SimpleNamespace(note=said.append))
    with anyio.fail_after(HANGS_S):
        async with EndlessScripts(windows, events, timeout_s=TIMEOUT_S).ended():
            await tab.enough.wait()
    assert tab.ended == ended
    assert said == (["the page's script did not return within 0.2 s and was ended"] if ended else [])
