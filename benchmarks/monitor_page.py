"""The monitor's page in a real Chromium beside a run: time to the first whole screenshot, main thread, memory, and delay.

`millrace monitor --web` runs in a process of its own, the page in a browser of its own, both on this machine.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import anyio
from playwright.async_api import CDPSession, async_playwright

from browser_workers.chromium.process.executable import find_chromium, sandboxed
from bus.jetstream import connect
from bus.server import address_of
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import StepPhase
from tests.support.drills.simulated_run import SimulatedRun
from tests.support.runs.served_monitor import served_monitor

_READY_S = 60.0
_TELL_EVERY_S = 0.2
_LAST_S = 3.0
"""For what was told last to be drawn."""
_PROBED = EpisodeId("probe-r0000-page-m0")
_PROBER = WorkerId("page-probe")
_LIVE = "(least) => document.querySelectorAll('.cells .cell:not(.free)').length >= least"
_OBSERVE = """(episode) => {
  window.longest = 0;
  window.drawn = [];
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
  }).observe({ type: "longtask" });
  new MutationObserver(() => {
    const cell = document.querySelector(`.cells [data-episode="${episode}"]`);
    if (cell) window.drawn.push([Number(cell.textContent.slice(1)), Date.now() / 1000]);
  }).observe(document.querySelector(".cells"), { subtree: true, childList: true, characterData: true });
}"""


@dataclass(frozen=True)
class PageRow:
    cells: int
    first_s: float
    """From the address to the cells of all live episodes."""
    script_share: float
    """Of one core; without style, layout and paint."""
    task_share: float
    """Of one core, everything that the page's main thread did."""
    longest_task_ms: float
    """Behind the first screenshot; 0: none was longer than 50 ms."""
    heap_mib: float
    delay_p50_ms: float
    delay_p99_ms: float
    """From a phase told on the bus to its cell; a page is told once a second."""


async def measure_page(run: SimulatedRun, folder: Path, live: int, seconds: float) -> PageRow:
    """Beside a run that plays `live` episodes."""
    async with served_monitor(folder) as url, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_chromium(), chromium_sandbox=sandboxed())
        page = await browser.new_page(viewport={"width": 1600, "height": 1000})
        page.set_default_timeout(1000 * _READY_S)
        await page.goto(url)
        # The monitor itself has just come: the second look is at one that knows everything.
        await page.wait_for_function(_LIVE, arg=live)
        began = time.monotonic()
        await page.goto(url)
        await page.wait_for_function(_LIVE, arg=live)
        first_s = time.monotonic() - began
        await page.evaluate(_OBSERVE, _PROBED)
        developer = await page.context.new_cdp_session(page)
        await developer.send("Performance.enable")
        before = await _metrics(developer)
        told: list[tuple[int, float]] = []
        with anyio.move_on_after(seconds):
            await _tell(run, folder, told)
        await anyio.sleep(_LAST_S)
        after = await _metrics(developer)
        delays = _delays(told, await page.evaluate("window.drawn"))
        took_s = after["Timestamp"] - before["Timestamp"]
        return PageRow(
            cells=await page.locator(".cells .cell:not(.free)").count(),
            first_s=first_s,
            script_share=(after["ScriptDuration"] - before["ScriptDuration"]) / took_s,
            task_share=(after["TaskDuration"] - before["TaskDuration"]) / took_s,
            longest_task_ms=await page.evaluate("window.longest"),
            heap_mib=after["JSHeapUsedSize"] / 2**20,
            delay_p50_ms=1000 * median(delays),
            delay_p99_ms=1000 * sorted(delays)[int(0.99 * len(delays))],
        )


async def _metrics(developer: CDPSession) -> dict[str, float]:
    found = await developer.send("Performance.getMetrics")
    return {metric["name"]: metric["value"] for metric in found["metrics"]}


async def _tell(run: SimulatedRun, folder: Path, told: list[tuple[int, float]]) -> None:
    """Phases of an episode that there is not, with the time of each."""
    async with connect(address_of(folder / "server"), run.subjects, run.config.bus_config, name="page-probe") as bus:
        step = 0
        while True:
            message = StepPhase(episode=_PROBED, attempt=1, step=step, phase="acting", worker=_PROBER)
            told.append((step, time.time()))
            await bus.tell(run.subjects.phase(_PROBER), message)
            step += 1
            await anyio.sleep(_TELL_EVERY_S)


def _delays(told: Sequence[tuple[int, float]], drawn: Sequence[tuple[int, float]]) -> list[float]:
    """Seconds. A step that was over before the page was told has no screenshot of its own: a later one shows that it
    arrived."""
    found = []
    for step, at in told:
        moments = [moment for number, moment in drawn if number > step]
        if moments:
            found.append(max(0.0, min(moments) - at))
    return found
