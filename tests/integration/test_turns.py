"""Turns at sites through a real nats-server: ten workers together keep a limit."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import anyio
import pytest

from bus.background import background
from bus.context import WorkerContext
from bus.jetstream import connect, create_topology
from bus.ports import Record
from bus.presence import Status
from bus.server import nats_server
from bus.subjects import Subjects
from bus.topology import streams
from bus.turns import NoTurn, Turns
from schemas.bus_config import BusConfig
from schemas.ids import WorkerId
from schemas.messages import Role, SiteTurn
from schemas.site_limit import SiteLimit
from tests import builders
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
CONFIG = BusConfig(run=builders.RUN)
SUBJECTS = Subjects(builders.RUN)
NUM_WORKERS, NUM_ACTIONS, LIMIT = 10, 4, 3


async def test_ten_workers_together_keep_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.turns._GIVING_BACK_S", HANGS_S)
    under_way, most, done = 0, 0, 0

    async with nats_server(tmp_path) as address, connect(address, SUBJECTS, CONFIG, name="admin") as bus:
        await create_topology(bus, streams(SUBJECTS, CONFIG), ())

        async def act(number: int) -> None:
            nonlocal under_way, most, done
            async with connect(address, SUBJECTS, CONFIG, name=f"b{number}") as own:
                status = Status(Role.BROWSER, WorkerId(f"b{number}"))
                turns = Turns(WorkerContext(own, SUBJECTS, status), patience_s=HANGS_S)
                for _ in range(NUM_ACTIONS):
                    turn = await turns.wait("shop.example", "", SiteLimit(in_flight=LIMIT))
                    async with turns.under_way(turn):
                        under_way += 1
                        most = max(most, under_way)
                        await anyio.sleep(0.01)
                        under_way -= 1
                    done += 1

        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                for number in range(NUM_WORKERS):
                    group.start_soon(act, number)
        assert await bus.subjects(SUBJECTS.turns, SUBJECTS.turn("flight", "shop.example", "", "*")) == {}
    assert done == NUM_WORKERS * NUM_ACTIONS
    assert 1 <= most <= LIMIT


async def test_no_minute_by_the_servers_clock_has_more(tmp_path: Path) -> None:
    async with nats_server(tmp_path) as address, connect(address, SUBJECTS, CONFIG, name="admin") as bus:
        await create_topology(bus, streams(SUBJECTS, CONFIG), ())
        num_had = 0

        async def ask(number: int) -> None:
            nonlocal num_had
            status = Status(Role.BROWSER, WorkerId(f"b{number}"))
            turns = Turns(WorkerContext(bus, SUBJECTS, status), patience_s=3.0)
            for _ in range(NUM_ACTIONS):
                try:
                    await turns.wait("shop.example", "", SiteLimit(per_minute=LIMIT))
                except NoTurn:
                    return
                num_had += 1

        taken: list[Record] = []
        came = anyio.Event()

        async def read(records: AsyncIterator[Record]) -> None:
            """Beside those who ask: what is read only behind them may have aged out."""
            nonlocal came
            async for record in records:
                taken.append(record)
                came.set()
                came = anyio.Event()

        async with bus.tail(SUBJECTS.turns, SUBJECTS.everything("turn")) as records, background(partial(read, records)):
            async with anyio.create_task_group() as group:
                for number in range(NUM_WORKERS):
                    group.start_soon(ask, number)
            with anyio.fail_after(HANGS_S):
                while len(taken) < num_had:
                    await came.wait()
    assert num_had >= LIMIT
    assert all(isinstance(record.message, SiteTurn) for record in taken)
    for first in taken:
        assert sum(first.time_s <= record.time_s < first.time_s + 60.0 for record in taken) <= LIMIT
