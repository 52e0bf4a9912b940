"""A worker that was killed and is started again on its machine gives back at once what it held: nobody waits for its lease."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from bus.jetstream import connect, create_topology
from bus.server import nats_server
from bus.topology import shared_queues, streams, task_queue
from schemas.messages import Split
from tests import builders
from tests.contract.backends import CONFIG, SUBJECTS
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
LONG = replace(CONFIG, task_ack_wait_s=3600.0)


async def test_another_worker_gets_what_a_killed_one_held_when_that_is_started_again(tmp_path: Path) -> None:
    queue, holdings = task_queue(SUBJECTS, LONG, Split.TRAIN), tmp_path / "holdings" / "browser-1"
    async with nats_server(tmp_path) as address, connect(address, SUBJECTS, LONG, name="other") as other:
        await create_topology(other, streams(SUBJECTS, LONG), shared_queues(SUBJECTS, LONG, LONG.rubrics))
        for name in ("held", "done"):
            task = builders.task(name)
            await other.append(SUBJECTS.tasks, SUBJECTS.task(task.split, task.episode), task)
        async with (
            connect(address, SUBJECTS, LONG, name="browser-1", holdings=holdings) as killed,
            killed.work(queue, prefetch=0) as inbox,
        ):
            # It settles one, and goes without a word about the other, as a process does that is killed.
            held, done = await anext(inbox), await anext(inbox)
            await done.ack()
        async with (
            other.work(queue, prefetch=0) as inbox,
            connect(address, SUBJECTS, LONG, name="browser-1", holdings=holdings),
        ):
            with anyio.fail_after(HANGS_S):
                again = await anext(inbox)
        assert (again.message, again.num_delivered) == (held.message, 2)
