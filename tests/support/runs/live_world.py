"""What the live page's tests look at: a run on a bus in this process, a monitor that watches it, and the page's server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Literal

import anyio

from bus import chain
from bus.ports import Bus
from bus.subjects import Subjects
from ops.web.access import Access
from ops.web.application import application
from ops.web.index import EpisodeIndex
from ops.web.live import Live, Watched
from ops.web.serving import Listening, serve
from ops.web.store import Shown
from ops.web.stream_store import StreamStore
from ops.web.token_text import TokenTexts
from ops.web.viewer import Viewer, following
from schemas.config import Config
from schemas.messages import StepPhase, Task, Trajectory
from tests.builders import WORKER, judgement, task
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S

RUBRIC = "environment_v1"
CONFIG = Config()
CONFIG = replace(CONFIG, bus_config=replace(CONFIG.bus_config, run=SUBJECTS.run, rubrics=(RUBRIC,)))


@dataclass
class LiveRun:
    """A run whose feeder, browser worker and judge are the test."""

    bus: Bus

    async def admit(self, name: str, *, of: Task | None = None) -> Task:
        admitted = of or task(name, max_steps=9)
        await chain.admit(self.bus, SUBJECTS, admitted)
        await self.bus.append(SUBJECTS.tasks, SUBJECTS.task(admitted.split, admitted.episode), admitted)
        return admitted

    async def take(self, of: Task) -> chain.EpisodeChain:
        owner = await chain.EpisodeChain.take(self.bus, SUBJECTS, of, WORKER)
        assert isinstance(owner, chain.EpisodeChain)
        return owner

    async def tell(self, of: Task, phase: Literal["deciding", "acting"], step: int) -> None:
        message = StepPhase(episode=of.episode, attempt=1, step=step, phase=phase, worker=WORKER)
        await self.bus.tell(SUBJECTS.phase(WORKER), message)

    async def judge(self, ended: Trajectory) -> None:
        given = judgement(ended, rubric=RUBRIC)
        await self.bus.append(SUBJECTS.judged, SUBJECTS.judgement(given.split, RUBRIC, given.episode), given)


@asynccontextmanager
async def serving_live(
    watch: Watched, bus: Bus, *, subjects: Subjects = SUBJECTS, port: int = 0, config: Config = CONFIG
) -> AsyncIterator[str]:
    """The address of the page, with the viewer beside it."""
    live = Live(watch, bus, subjects, config)
    viewer = Viewer(Shown(store=StreamStore(bus, subjects), config=config, kind="run"), EpisodeIndex(RUBRIC), TokenTexts())
    app = application([live.section, viewer.section], Access(), run=subjects.run, remark="")
    urls: list[str] = []
    listens = anyio.Event()

    def ready(url: str) -> None:
        urls.append(url.rstrip("/"))
        listens.set()

    def end() -> None:
        live.end()
        viewer.end()

    async with following(viewer), anyio.create_task_group() as group:

        async def run() -> None:
            await serve(app, Listening(port=port, exact=True), ready=ready, ending=end)

        group.start_soon(run)
        with anyio.fail_after(HANGS_S):
            await listens.wait()
        yield urls[0]
        group.cancel_scope.cancel()
