"""Whose script is ended: that of a page that runs, and answers nobody."""

from types import SimpleNamespace
from typing import cast

import anyio
import pytest

from browser_workers.chromium.calls import Json, NoAnswer
from browser_workers.chromium.endless_scripts import EndlessScripts
from browser_workers.chromium.page_events import PageEvents
from browser_workers.chromium.page_frames import LocalRoot
from browser_workers.chromium.windows import Windows
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio
TIMEOUT_S = 0.4
NUM_LOOKS = 12
MUCH_S, LITTLE_S = 1.0, 0.003


class Tab:
    """One whose main thread has used `used_s` seconds more at each look, and much before it was asked anything.

    It answers when its script is ended.

    Also its frames, of which one, `frame`, may hang; it alone where it is named.
    """

    def __init__(self, used_s: float, frame: str = "") -> None:
        self.loading = SimpleNamespace(navigation=None)
        self._frame = frame
        self.enough = anyio.Event()
        """It was ended, or looked at often without having run for long."""
        self.num_looks = 0
        self._ended = anyio.Event()
        self._used_s = used_s
        self._used_before_s = 0.0

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    @property
    def frames(self) -> "Tab":
        return self

    async def prepare(self) -> None: ...

    async def roots(self) -> list[LocalRoot]:
        return [LocalRoot(each, self._send, self._answers if each != self._frame else self._ask) for each in ("", "frame")]

    async def _send(self, method: str, params: Json) -> Json:
        raise AssertionError("has a deadline of its own")

    async def _answers(self, method: str, params: Json | None = None, *, timeout_s: float = 0.0) -> Json:
        return {"metrics": []}

    async def _ask(self, method: str, params: Json | None = None, *, timeout_s: float = 0.0) -> Json:
        if method == "Runtime.evaluate":
            self._used_before_s += MUCH_S
            with anyio.move_on_after(timeout_s):
                await self._ended.wait()
                return {}
            raise NoAnswer("no answer")
        if method == "Runtime.terminateExecution":
            self._ended.set()
            self.enough.set()
            return {}
        self.num_looks += 1
        if self.num_looks == NUM_LOOKS and self._used_s <= LITTLE_S:
            self.enough.set()
        used_s = self._used_before_s + self.num_looks * self._used_s
        return {"metrics": [{"name": "Nodes", "value": 7}, {"name": "ThreadTime", "value": used_s}]}


@pytest.mark.parametrize(
    ("used_s", "ended"),
    [(0.1, True), (0.005, True), (LITTLE_S, False), (0.0, False)],
    ids=["runs all the time", "gets little of a full machine", "has not run for long yet", "waits for its turn, or its site"],
)
async def test_only_a_page_that_runs_has_its_script_ended(used_s: float, ended: bool) -> None:
    tab = Tab(used_s)
    said = await ended_in(tab)
    assert tab.ended == ended
    assert said == (["the page's script did not return within 0.2 s and was ended"] if ended else [])


async def test_a_frame_in_a_process_of_its_own_has_its_script_ended_and_nothing_else() -> None:
    tab = Tab(0.1, "frame")
    assert await ended_in(tab) == ["a frame's script did not return within 0.2 s and was ended"]
    assert tab.ended


async def ended_in(tab: Tab) -> list[str]:
    """What is said until the tab's script was ended, or looked at often."""
    said: list[str] = []
    windows = cast(Windows, SimpleNamespace(front=tab, tabs=[tab]))
    events = cast(PageEvents, SimpleNamespace(note=said.append))
    with anyio.fail_after(HANGS_S):
        async with EndlessScripts(windows, events, timeout_s=TIMEOUT_S).ended():
            await tab.enough.wait()
    return said
