"""The server's own notices stand beside the dead letters: its subjects name whole streams, a wildcard cannot."""

from pathlib import Path

import anyio
import pytest

from bus.jetstream import connect, create_topology
from bus.server import nats_server
from bus.settlement import settle
from bus.topology import shared_queues, streams, task_queue
from schemas.messages import Split
from tests.builders import WORKER, task
from tests.contract.backends import CONFIG, SUBJECTS
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


async def test_a_terminated_delivery_leaves_the_server_s_notice(tmp_path: Path) -> None:
    queue = task_queue(SUBJECTS, CONFIG, Split.TRAIN)
    notices = f"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.{SUBJECTS.tasks}.>"
    async with nats_server(tmp_path) as address, connect(address, SUBJECTS, CONFIG, name="test") as bus:
        await create_topology(bus, streams(SUBJECTS, CONFIG), shared_queues(SUBJECTS, CONFIG, ()))
        await bus.append_bytes(SUBJECTS.tasks, SUBJECTS.task(Split.TRAIN, task().episode), b"\xc1 garbage")
        async with bus.work(queue, prefetch=0) as inbox:
            delivery = await anext(inbox)
            async with settle(bus, delivery, WORKER):
                _ = delivery.message
        with anyio.fail_after(HANGS_S):
            while not await bus.subjects(SUBJECTS.advisories, notices):  # noqa: ASYNC110 - nothing says when it is stored
                await anyio.sleep(0.05)
        assert await bus.subjects(SUBJECTS.advisories, SUBJECTS.dead(SUBJECTS.tasks))
