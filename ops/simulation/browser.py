"""A browser without Chromium: pages that take a drawn number of steps, show screenshots of a given size, and fail now and
then.

Invariant: a page is a function of the seed and its address, so an episode that is begun again meets the same page.
"""

import io
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import anyio
from PIL import Image

from browser_workers.browser import EnvironmentState, Opening, PageState, Performed, View
from browser_workers.suites import UnknownWebsite
from ops.simulation.draws import generator, num_steps, spread
from ops.simulation.hostility import TEXT, Hostility
from schemas.errors import BrowserError, PageFailed
from schemas.messages import Action, Blockage, Screenshot
from schemas.simulation_config import SimulationConfig

NAME = "simulated"
_ORIGIN = "http://simulated.millrace.test"
_WIDTH, _HEIGHT = 64, 64
_KIB = 1024
_HANGS_S = 2.0
"""Until a page that hangs is given up: every operation of a browser has a deadline."""


class SimulatedSuite:
    """`simulated:page?task=<n>`."""

    def resolve(self, page: str, query: str) -> Opening:
        if page != "page":
            raise UnknownWebsite(f"the simulated suite has no page {page!r}: write page")
        return Opening(url=f"{_ORIGIN}/page?{query}", keeps_no_state=True, quiet_s=0.0)


@dataclass(frozen=True, slots=True)
class Script:
    """What will happen on one page."""

    num_steps: int
    fails_at: int | None
    """Step before which the page fails."""
    reward: float
    hostility: Hostility | None
    """What it does when it is looked at."""

    @classmethod
    def of(cls, url: str, config: SimulationConfig) -> "Script":
        draw = generator(config.seed, url)
        steps = num_steps(draw, config)
        fails = draw.random() < config.failure_share
        reward = 1.0 if draw.random() < config.success_share else 0.0
        fails_at = draw.randrange(steps) if fails else None
        hostile = draw.random() < config.hostile_share
        return cls(steps, fails_at, reward, draw.choice(list(Hostility)) if hostile else None)


class SimulatedScreenshots:
    """Small real JPEG screenshots, filled up behind their end marker to the size asked for; no two steps share their bytes."""

    def __init__(self, config: SimulationConfig) -> None:
        encoded = io.BytesIO()
        Image.new("RGB", (_WIDTH, _HEIGHT), (90, 120, 200)).save(encoded, "jpeg")
        self._start = encoded.getvalue()
        self._num_bytes = max(round(config.screenshot_kb * _KIB), len(self._start))
        self._filling = generator("screenshot").randbytes(self._num_bytes)

    def screenshot(self, url: str, step: int) -> Screenshot:
        data = b"%b%b %d " % (self._start, url.encode(), step)
        data += self._filling[len(data) :]
        return Screenshot(data=data, media_type="image/jpeg", width=_WIDTH, height=_HEIGHT)


class SimulatedSession:
    """One page, played through."""

    def __init__(self, url: str, screenshots: SimulatedScreenshots, config: SimulationConfig) -> None:
        self._url = url
        self._screenshots = screenshots
        self._config = config
        self._script = Script.of(url, config)
        self._latencies = generator(config.seed, url, "latency")
        self._step = 0

    async def open(self) -> Performed:
        await self._operate()
        return Performed()

    async def perform(self, action: Action) -> Performed:
        self._step += 1
        await self._operate()
        return Performed()

    async def state(self) -> PageState:
        done = self._step >= self._script.num_steps
        environment = EnvironmentState(done=done, reward=self._script.reward if done else 0.0)
        title = TEXT if self._script.hostility is Hostility.TEXT else f"Step {self._step}"
        return PageState(url=self._url, title=title, environment=environment)

    async def view(self) -> View:
        await self._operate()
        match self._script.hostility:
            case Hostility.RAISES:
                raise ZeroDivisionError(f"{self._url} means harm, as drawn")
            case Hostility.HANGS:
                await anyio.sleep(_HANGS_S)
                raise PageFailed(f"{self._url} did not answer within {_HANGS_S:g} s, as drawn")
        return View(screenshot=self._screenshots.screenshot(self._url, self._step), state=await self.state())

    async def page_values(self, expressions: Sequence[str]) -> tuple[str, ...]:
        return ("",) * len(expressions)

    egress = ""

    def has_other_egress(self) -> bool:
        return False

    async def blockage(self) -> Blockage | None:
        return None

    async def pass_over_blockage(self) -> None: ...

    async def wait_failed(self) -> BrowserError:
        await anyio.sleep_forever()
        raise AssertionError("slept for ever")

    async def _operate(self) -> None:
        if self._config.step_latency_ms:
            await anyio.sleep(spread(self._latencies, self._config.step_latency_ms, self._config.tail) / 1000.0)
        if self._step == self._script.fails_at:
            raise PageFailed(f"{self._url} fails at step {self._step}, as drawn")


class SimulatedBrowser:
    """Any number of sessions at once."""

    def __init__(self, config: SimulationConfig) -> None:
        self._config = config
        self._screenshots = SimulatedScreenshots(config)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    @asynccontextmanager
    async def session(self, opening: Opening) -> AsyncIterator[SimulatedSession]:
        yield SimulatedSession(opening.url, self._screenshots, self._config)
