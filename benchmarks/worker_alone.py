"""This project's browser without the bus: the session that a browser worker drives, played by the schedule."""

import time

from benchmarks.browser_schedule import FORMAT, NUM_STEPS, QUALITY, VIEWPORT, first_page, schedule
from benchmarks.player import Player, Timed
from browser_workers.browser import Opening
from browser_workers.chromium.browser import PlaywrightBrowser
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig

CONFIG = BrowserConfig(viewport_width=VIEWPORT[0], viewport_height=VIEWPORT[1], screenshot_format=FORMAT, jpeg_quality=QUALITY)


class WorkerAlone(Player):
    def __init__(self, site: str) -> None:
        self._site = site
        self._browser = PlaywrightBrowser(CONFIG, EnvConfig())

    async def __aenter__(self) -> "WorkerAlone":
        await self._browser.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._browser.__aexit__(None, None, None)

    async def play(self, episode: int, timed: Timed) -> int:
        began = time.monotonic()
        async with self._browser.session(Opening(url=f"{self._site}/page/{first_page(episode)}")) as session:
            await session.open()
            await session.view()
            timed.seconds.setdefault("reset", []).append(time.monotonic() - began)
            for step in schedule(episode):
                began = time.monotonic()
                with timed("act"):
                    await session.perform(step.action)
                    await session.state()
                with timed("observe"):
                    await session.view()
                timed.step(step.kind.value, time.monotonic() - began)
            began = time.monotonic()
        timed.seconds.setdefault("close", []).append(time.monotonic() - began)
        return NUM_STEPS
