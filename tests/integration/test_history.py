"""`history` of a log that keeps the newest record of each subject: nobody is missing, whatever happens between two answers."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nats.aio.msg import Msg

from bus.jetstream import JetStreamBus, connect, create_topology
from bus.jetstream.read import Reader
from bus.server import nats_server
from bus.topology import streams
from schemas.ids import WorkerId
from schemas.messages import Heartbeat, Role
from tests.contract.backends import CONFIG, SUBJECTS
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
LASTING = replace(CONFIG, heartbeats_max_age_s=4 * HANGS_S)
EVERYBODY = SUBJECTS.everything("heartbeat")
Disturbed = Callable[[int, list[Msg]], Awaitable[list[Msg]]]
"""Makes of an answer's number and its replies what is heard of it."""


@pytest.fixture
async def bus(tmp_path: Path, anyio_backend: str) -> AsyncIterator[JetStreamBus]:
    async with nats_server(tmp_path) as address, connect(address, SUBJECTS, LASTING, name="test") as bus:
        await create_topology(bus, [spec for spec in streams(SUBJECTS, LASTING) if spec.name == SUBJECTS.heartbeats], ())
        yield bus


async def beat(bus: JetStreamBus, number: int) -> None:
    worker = WorkerId(f"w{number}")
    message = Heartbeat(role=Role.POLICY, worker=worker, state="working", at=1.0)
    await bus.append(SUBJECTS.heartbeats, SUBJECTS.heartbeat(Role.POLICY, worker), message)


async def heard(bus: JetStreamBus) -> list[tuple[str, int]]:
    """Names in the order of their newest records, with those records' sequences."""
    records = await bus.history(SUBJECTS.heartbeats, EVERYBODY)
    return [(record.message.worker, record.seq) for record in records if isinstance(record.message, Heartbeat)]


def disturb(monkeypatch: pytest.MonkeyPatch, disturbed: Disturbed) -> None:
    answered, num_answers = Reader._batch, 0

    async def batch(self: Reader, stream: str, body: dict[str, Any]) -> list[Msg]:
        nonlocal num_answers
        num_answers += 1
        return await disturbed(num_answers, await answered(self, stream, body))

    monkeypatch.setattr(Reader, "_batch", batch)


@pytest.mark.parametrize("number", [300, 1100], ids=["several batches", "more than a batched get covers"])
async def test_nobody_is_missing_who_is_heard_anew_between_two_answers(
    number: int, bus: JetStreamBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in range(number):
        await beat(bus, each)

    async def renewed(num_answers: int, replies: list[Msg]) -> list[Msg]:
        if num_answers <= 3:  # of some it is not the first time
            for each in (number - 1, number - num_answers, 0):
                await beat(bus, each)
        return replies

    disturb(monkeypatch, renewed)
    found = await heard(bus)
    assert {name for name, _ in found} == {f"w{each}" for each in range(number)}
    assert len(found) == number
    assert [seq for _, seq in found] == sorted(seq for _, seq in found)
    assert ("w0", number + 9) in found, "each by its newest record"


@pytest.mark.parametrize("num_sent", [0, 7], ids=["before any was sent", "in the midst"])
async def test_nobody_is_missing_behind_one_who_ages_out_while_the_server_answers(
    num_sent: int, bus: JetStreamBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends such an answer where the record is gone."""
    for each in range(20):
        await beat(bus, each)
    (gone,) = await bus._reader._batch(SUBJECTS.heartbeats, {"multi_last": [f"{EVERYBODY[:-1]}nobody.at.all"], "batch": 1})

    async def cut(num_answers: int, replies: list[Msg]) -> list[Msg]:
        return [*replies[:num_sent], gone] if num_answers == 1 else replies

    disturb(monkeypatch, cut)
    assert await heard(bus) == [(f"w{each}", each + 1) for each in range(20)]
