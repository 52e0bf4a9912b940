"""Letters as whoever has a worker's key could write them: what is none is left out, and none leads beside its queue."""

import msgspec
import pytest

from bus.codec import encode
from bus.memory import MemoryBus
from bus.subjects import Subjects
from ops.run.dead_letters import read_letters, resend
from schemas.errors import ConfigurationError
from schemas.ids import WorkerId
from schemas.messages import DeadLetter, Heartbeat, Role
from tests.builders import RUN, judgement, task, trajectory

pytestmark = pytest.mark.anyio
SUBJECTS = Subjects(RUN)
TASK = task()
JUDGEMENT = judgement(trajectory(TASK))
TASKS_SUBJECT = SUBJECTS.task(TASK.split, TASK.episode)
JUDGED_SUBJECT = SUBJECTS.judgement(JUDGEMENT.split, JUDGEMENT.rubric, JUDGEMENT.episode)
LETTER = DeadLetter(stream=SUBJECTS.tasks, consumer="c", seq=1, subject=TASKS_SUBJECT, reason="cannot play", data=encode(TASK))


@pytest.fixture
def bus() -> MemoryBus:
    return MemoryBus(SUBJECTS)


async def test_what_is_no_letter_keeps_none_from_being_read(bus: MemoryBus) -> None:
    where = SUBJECTS.dead(SUBJECTS.tasks)
    beat = Heartbeat(role=Role.BROWSER, worker=WorkerId("w"), state="waiting", at=0.0)
    await bus.append(SUBJECTS.advisories, where, LETTER)
    foreign = (b"\xc1", encode(beat), encode(msgspec.structs.replace(LETTER, stream=SUBJECTS.steps)))
    for data in foreign:
        await bus.append_bytes(SUBJECTS.advisories, where, data)
    await bus.append_bytes(SUBJECTS.advisories, SUBJECTS.resent(1), b"\xc1")
    await bus.append(SUBJECTS.advisories, where, msgspec.structs.replace(LETTER, seq=2))

    letters = await read_letters(bus, SUBJECTS)

    assert [(letter.seq, letter.message, letter.resent_at) for letter in letters] == [(1, TASK, None), (2, TASK, None)]


@pytest.mark.parametrize(
    "subject",
    [JUDGED_SUBJECT, SUBJECTS.task(TASK.split, TASK.episode).replace(RUN, "other", 1), f"{TASKS_SUBJECT}.more",
     f"{TASKS_SUBJECT}\n", f"{RUN}.task.*.*", f"{RUN}.task.train.", f"{RUN}.step.train.any.e.1.0", ""],
)  # fmt: skip
async def test_a_letter_of_another_subject_is_not_sent_again(bus: MemoryBus, subject: str) -> None:
    forged = msgspec.structs.replace(LETTER, subject=subject, data=encode(JUDGEMENT))
    await bus.append(SUBJECTS.advisories, SUBJECTS.dead(SUBJECTS.tasks), forged)
    [letter] = await read_letters(bus, SUBJECTS)

    with pytest.raises(ConfigurationError, match="its subject is none of"):
        await resend(bus, SUBJECTS, letter)

    assert not await bus.last_seq(SUBJECTS.tasks)


@pytest.mark.parametrize(
    ("stream", "subject"),
    [(SUBJECTS.tasks, TASKS_SUBJECT), (SUBJECTS.steps, SUBJECTS.step_any(TASK.split, TASK.episode, 1, 3))],
)
async def test_a_letter_of_its_queue_is_sent_again(bus: MemoryBus, stream: str, subject: str) -> None:
    kept = msgspec.structs.replace(LETTER, stream=stream, subject=subject, data=b"\xc1 of a newer version")
    await bus.append(SUBJECTS.advisories, SUBJECTS.dead(stream), kept)
    [letter] = await read_letters(bus, SUBJECTS)

    await resend(bus, SUBJECTS, letter)

    [copy] = await bus.read_bytes(stream, ">")
    assert (copy.subject, copy.data) == (subject, letter.data)
