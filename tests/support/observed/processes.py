"""Worker processes, seen where a key is consumed: where they run, what they log, how much they do at once."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import anyio
import pytest
import structlog

from browser_workers.suites.demo import DemoSuite
from browser_workers.worker import BrowserWorker
from bus import chain
from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from bus.subjects import Subjects
from judges.worker import JudgeWorker
from ops.cli import main
from ops.processes.guard import MARKER
from schemas.config import Config
from schemas.errors import PageFailed
from schemas.ids import WorkerId
from schemas.messages import Role
from tests import builders
from tests.deadlines import HANGS_S

SUBJECTS = Subjects(builders.RUN)
_PATCH = pytest.MonkeyPatch


def starts_in(config: Config) -> object:
    """The run's folder."""
    return _begun(config)["folder"]


def logs_debug_events(config: Config) -> object:
    return "seen" in _begun(config)["log"]


def _begun(config: Config) -> dict[str, str]:
    """A role is begun as from a terminal; it logs one debug event and ends."""
    begun: dict[str, str] = {}

    async def run_role(_role: Role, run_dir: Path, _config: Config, worker: str) -> int:
        structlog.get_logger().debug("seen")
        begun["folder"] = run_dir.name
        begun["file"] = str(run_dir / "logs" / f"{worker}.log")
        return 0

    fake = ModuleType("ops.roles.running")
    fake.run_role = run_role  # type: ignore[attr-defined]
    with _PATCH.context() as patch:
        patch.setitem(sys.modules, "ops.roles.running", fake)
        patch.setattr("ops.config.loading.load_config", lambda *_: config)
        patch.setattr("ops.config.loading.loaded", lambda *_: SimpleNamespace(config=config, notes=()))
        patch.setenv(MARKER, str(os.getppid()))
        assert main(["browser", "--config", "default", "--name", "browser-1"]) == 0
    return begun | {"log": Path(begun["file"]).read_text()}


class _Waiting:
    """An inbox without messages that counts who waits."""

    def __init__(self) -> None:
        self.num_waiting = 0

    @asynccontextmanager
    async def work(self, *_: object, **__: object) -> AsyncIterator["_Waiting"]:
        yield self

    def __aiter__(self) -> "_Waiting":
        return self

    async def __anext__(self) -> object:
        self.num_waiting += 1
        await anyio.sleep_forever()
        raise StopAsyncIteration


def judged_at_once(config: Config) -> object:
    async def counted() -> int:
        bus: Any = _Waiting()
        status = Status(Role.JUDGE, WorkerId("j"))
        worker = JudgeWorker(
            WorkerContext(bus, SUBJECTS, status),
            config,
            judge=cast(Any, None),
        )
        return await _blocked(worker.run, lambda: bus.num_waiting)

    return anyio.run(counted)


async def _blocked(body: Callable[[], Any], figure: Callable[[], int]) -> int:
    """A figure when everything that `body` began waits."""
    async with anyio.create_task_group() as group:
        group.start_soon(body)
        await anyio.wait_all_tasks_blocked()
        found = figure()
        group.cancel_scope.cancel()
    return found


class _Pages:
    """Sessions that hang when they are opened, or fail."""

    def __init__(self, *, fails: bool) -> None:
        self.fails, self.num_begun = fails, 0

    @asynccontextmanager
    async def session(self, _opening: object) -> AsyncIterator["_Pages"]:
        self.num_begun += 1
        yield self

    egress = ""

    async def open(self) -> object:
        if self.fails:
            raise PageFailed("no page")
        await anyio.sleep_forever()
        raise AssertionError

    async def wait_failed(self) -> object:
        await anyio.sleep_forever()
        raise AssertionError


def episodes_at_once(config: Config) -> object:
    return anyio.run(_episodes, config, False)


def times_begun(config: Config) -> object:
    """One episode whose page never opens."""
    return anyio.run(_episodes, config, True)


async def _episodes(config: Config, fails: bool) -> int:
    pages, bus = _Pages(fails=fails), MemoryBus(SUBJECTS, replace(config.bus_config, run=builders.RUN))
    worker = BrowserWorker(
        WorkerContext(bus, SUBJECTS, Status(Role.BROWSER, WorkerId("b"))),
        config,
        browser=cast(Any, pages),
        suites={"demo": DemoSuite()},
    )
    for member in range(1 if fails else 5):
        task = builders.task(f"t{member}")
        await chain.admit(bus, SUBJECTS, task)
        await bus.append(SUBJECTS.tasks, SUBJECTS.task(task.split, task.episode), task)
    if not fails:
        with _PATCH.context() as patch:
            patch.setattr("browser_workers.intake._PATIENCE_S", 0.0)  # a slot that asks evaluation alone is blocked as well
            return await _blocked(worker.run, lambda: pages.num_begun)
    async with bus.tail(SUBJECTS.trajectories, SUBJECTS.everything("trajectory")) as ended, anyio.create_task_group() as group:
        group.start_soon(worker.run)
        with anyio.fail_after(HANGS_S):
            await anext(ended)
        group.cancel_scope.cancel()
    return pages.num_begun
