"""A running server takes new permissions on: at once, for clients that are connected, and without disturbing anyone."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from nats.aio.msg import Msg

from bus.background import companion_group
from bus.jetstream import connect, create_topology
from bus.jetstream.calls import NoAnswer
from bus.jetstream.link import Link
from bus.ports import Bus, Expect
from bus.server import address_of, nats_server, reload_permissions
from bus.server.ports import held_port
from bus.settlement import settle
from bus.topology import shared_queues, streams, trajectory_queue
from schemas.bus_config import BusConfig
from schemas.errors import NotPermitted
from schemas.ids import RunName
from tests.builders import WORKER, judgement, task, trajectory
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
BEFORE = BusConfig(run=SUBJECTS.run, rubrics=("old_v1",))
AFTER = replace(BEFORE, rubrics=("old_v1", "new_v1"))


async def judge(bus: Bus, rubric: str, name: str) -> None:
    given = msgspec.structs.replace(judgement(trajectory(task(name))), rubric=rubric)
    subject = SUBJECTS.judgement(given.split, rubric, given.episode)
    await bus.append(SUBJECTS.judged, subject, given, expect=Expect(subject, 0))


async def publish(bus: Bus, name: str) -> None:
    ended = trajectory(task(name))
    await bus.append(SUBJECTS.trajectories, SUBJECTS.trajectory(ended.task.split, ended.episode), ended)


async def test_connected_clients_go_on_and_may_more(tmp_path: Path) -> None:
    worked, tailed = set[int](), set[int]()
    heard = anyio.Event()

    async def wait_for(holds: Callable[[], bool]) -> None:
        nonlocal heard
        with anyio.fail_after(HANGS_S):
            while not holds():
                await heard.wait()
                heard = anyio.Event()

    async def work(bus: Bus) -> None:
        async with bus.work(trajectory_queue(SUBJECTS, BEFORE, "old_v1"), prefetch=0) as inbox:
            async for delivery in inbox:
                async with settle(bus, delivery, WORKER):
                    worked.add(delivery.seq)
                    heard.set()

    async def tail(bus: Bus) -> None:
        async with bus.tail(SUBJECTS.trajectories, SUBJECTS.everything("trajectory")) as records:
            async for record in records:
                tailed.add(record.seq)
                heard.set()

    async with (
        nats_server(tmp_path, [BEFORE]) as address,
        connect(address, SUBJECTS, BEFORE, name="admin") as admin,
        connect(address_of(tmp_path, role="judge"), SUBJECTS, BEFORE, name="judge") as judge_bus,
        connect(address_of(tmp_path, role="consumer"), SUBJECTS, BEFORE, name="consumer") as consumer,
        companion_group() as group,
    ):
        await create_topology(admin, streams(SUBJECTS, BEFORE), shared_queues(SUBJECTS, BEFORE, BEFORE.rubrics))
        group.start_soon(work, judge_bus)
        group.start_soon(tail, consumer)
        await publish(admin, "a")
        await wait_for(lambda: worked == tailed == {1})
        for _ in range(2):
            await reload_permissions(tmp_path, [AFTER])
        await publish(admin, "b")
        await wait_for(lambda: worked == tailed == {1, 2})
        await judge(judge_bus, "old_v1", "a")
        await judge(judge_bus, "new_v1", "a")
        with pytest.raises(NotPermitted):
            await judge(judge_bus, "other_v1", "a")
        async with connect(address_of(tmp_path, role="judge"), SUBJECTS, AFTER, name="judge-2") as later:
            await judge(later, "new_v1", "b")


async def test_a_server_whose_answer_is_lost_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, request = list[str](), Link.request

    async def losing(link: Link, subject: str, *args: Any, **kwargs: Any) -> Msg:
        answer = await request(link, subject, *args, **kwargs)
        if subject.startswith("$SYS."):
            asked.append(subject)
            if asked.count(subject) == 1:
                raise NoAnswer("the connection was lost")
        return answer

    async with nats_server(tmp_path, [BEFORE]):
        monkeypatch.setattr(Link, "request", losing)
        await reload_permissions(tmp_path, [AFTER])
    assert [subject.rpartition(".")[2] for subject in asked] == ["PING", "PING", "RELOAD", "RELOAD"]


async def test_before_it_nothing_more_is_permitted(tmp_path: Path) -> None:
    async with (
        nats_server(tmp_path, [BEFORE]) as address,
        connect(address, SUBJECTS, BEFORE, name="admin") as admin,
        connect(address_of(tmp_path, role="judge"), SUBJECTS, BEFORE, name="judge") as bus,
    ):
        await create_topology(admin, streams(SUBJECTS, BEFORE), ())
        with pytest.raises(NotPermitted):
            await judge(bus, "new_v1", "a")


async def test_what_a_start_would_write_is_what_a_reload_writes(tmp_path: Path) -> None:
    with held_port() as port:
        async with nats_server(tmp_path, [BEFORE], port=port):
            await reload_permissions(tmp_path, [AFTER, replace(AFTER, run=RunName("unserved"))])
            reloaded = (tmp_path / "nats.conf").read_text()
        async with nats_server(tmp_path, [AFTER], port=port):
            started = (tmp_path / "nats.conf").read_text()
    assert _but_machine(reloaded) == _but_machine(started)
    assert "new_v1" in started


def _but_machine(text: str) -> list[str]:
    """The disk's room is measured at every start, and the monitor's port drawn again where somebody has it."""
    return [line for line in text.splitlines() if not line.startswith(("jetstream", "http:"))]
