"""A slot that is stopped while it asks two queues keeps nothing."""

from dataclasses import replace

import anyio
import pytest

from browser_workers.intake import Intake
from bus.memory import MemoryBus
from bus.ports import Delivery, Inbox
from bus.topology import task_queue
from schemas.messages import Split
from tests.builders import task
from tests.contract.backends import CONFIG, SUBJECTS
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio


class StoppingInbox:
    """Its reader is stopped as something comes."""

    def __init__(self, inbox: Inbox, reader: anyio.CancelScope) -> None:
        self._inbox = inbox
        self._reader = reader

    def __aiter__(self) -> "StoppingInbox":
        return self

    async def __anext__(self) -> Delivery:
        delivery = await anext(self._inbox)
        self._reader.cancel()
        return delivery


async def test_what_comes_as_a_slot_is_stopped_goes_to_another() -> None:
    config = replace(CONFIG, task_ack_wait_s=2 * HANGS_S)
    bus, queued = MemoryBus(SUBJECTS, config), task()
    await bus.append(SUBJECTS.tasks, SUBJECTS.task(Split.TRAIN, queued.episode), queued)
    queues = {split: task_queue(SUBJECTS, config, split) for split in Split}
    async with bus.work(queues[Split.TRAIN], prefetch=0) as train, bus.work(queues[Split.EVAL], prefetch=0) as evaluation:
        with anyio.fail_after(HANGS_S), anyio.CancelScope() as stopped:
            await Intake(StoppingInbox(train, stopped), evaluation, eval_share=0.1).next()
        assert stopped.cancelled_caught
        with anyio.fail_after(HANGS_S):
            assert (await anext(aiter(train))).num_delivered == 2
