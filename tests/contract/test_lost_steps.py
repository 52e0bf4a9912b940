"""A wake-up that was taken by a worker who is gone is taken from him, and queued again for anybody."""

import anyio
import pytest

from bus.topology import step_queue
from schemas.bus_config import BusConfig
from schemas.errors import StreamFull
from schemas.messages import Split, StepWake
from tests.builders import RUN, task
from tests.contract.backends import SUBJECTS, Backend
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio
WAKE = StepWake(episode=task().episode, attempt=1, step=0, observation_seq=3)
SUBJECT = SUBJECTS.step_any(Split.TRAIN, WAKE.episode, WAKE.attempt, WAKE.step)
QUEUE = step_queue(SUBJECTS, BusConfig(run=RUN), Split.TRAIN)


@pytest.mark.usefixtures("answers_may_take_their_time")
async def test_it_goes_to_another_at_once_and_its_late_acknowledgement_takes_nothing(backend: Backend) -> None:
    bus, other = backend.bus, backend.other
    with anyio.fail_after(HANGS_S):
        async with other.work(QUEUE, prefetch=0) as lost, bus.work(QUEUE, prefetch=0) as heir:
            await bus.append(SUBJECTS.steps, SUBJECT, WAKE)
            taken = await anext(lost)
            with pytest.raises(StreamFull):
                await bus.append(SUBJECTS.steps, SUBJECT, WAKE)
            assert await bus.purge(SUBJECTS.steps, SUBJECT) == 1
            await bus.append(SUBJECTS.steps, SUBJECT, WAKE)
            again = await anext(heir)
            assert again.message == WAKE
            await taken.in_progress()
            await taken.ack()
            assert await bus.subjects(SUBJECTS.steps, SUBJECT), "the late one acknowledged its own copy only"
            await again.ack()
            assert not await bus.subjects(SUBJECTS.steps, SUBJECT)
