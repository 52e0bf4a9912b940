"""What no worker could handle is listed, shown and sent again, once."""

import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from bus.codec import encode
from bus.jetstream import JetStreamBus, create_topology
from bus.ports import WorkQueue
from bus.settlement import reject
from bus.topology import task_queue
from ops.processes.role_process import millrace_command, millrace_environment
from ops.run.dead_letters import Letter, not_resendable, numbered, read_letters, resend
from schemas.errors import ConfigurationError
from schemas.messages import DeadLetter, Split, Task
from tests.builders import WORKER, judgement, task, trajectory
from tests.contract.backends import CONFIG, SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.bus.played import play
from tests.support.polling import until
from tests.support.runs.running_run import running_run

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
QUEUE = task_queue(SUBJECTS, CONFIG, Split.TRAIN)
GARBAGE = b"\xc1 garbage"


@pytest.fixture
async def bus(tmp_path: Path, anyio_backend: str) -> AsyncIterator[JetStreamBus]:
    async with running_run(tmp_path) as bus:
        yield bus


async def rejected(bus: JetStreamBus, name: str, data: bytes | None = None) -> Task:
    """A task that a worker took and could not handle."""
    queued = task(name)
    subject = SUBJECTS.task(queued.split, queued.episode)
    if data is None:
        await bus.append(SUBJECTS.tasks, subject, queued)
    else:
        await bus.append_bytes(SUBJECTS.tasks, subject, data)
    async with bus.work(QUEUE, prefetch=0) as inbox:
        await reject(bus, await anext(inbox), WORKER, f"cannot play {name}")

        async def is_gone() -> bool:
            return not await bus.subjects(SUBJECTS.tasks, subject)

        await until(is_gone)
    return queued


async def letters_when(bus: JetStreamBus, number: int) -> list[Letter]:
    """Nothing says when the server has stored its own notices: looks until there are so many letters."""
    with anyio.fail_after(HANGS_S):
        while len(letters := await read_letters(bus, SUBJECTS)) < number:  # noqa: ASYNC110
            await anyio.sleep(0.05)
    return letters


async def test_a_letter_holds_the_message_and_the_reason_once(bus: JetStreamBus) -> None:
    good, _ = await rejected(bus, "good"), await rejected(bus, "bad", GARBAGE)
    with anyio.fail_after(HANGS_S):
        # Two letters, and the server's notice of each.
        while await bus.last_seq(SUBJECTS.advisories) < 4:  # noqa: ASYNC110
            await anyio.sleep(0.05)
    first, second = await read_letters(bus, SUBJECTS)
    assert (first.stream, first.subject, first.seq) == (SUBJECTS.tasks, SUBJECTS.task(good.split, good.episode), 1)
    assert (first.reason, first.worker, first.message, first.kind) == ("cannot play good", WORKER, good, "Task")
    assert (second.data, second.message, second.kind) == (GARBAGE, None, "unreadable")
    assert first.resent_at is None


async def test_sent_again_it_is_delivered_again_and_not_twice_by_mistake(bus: JetStreamBus) -> None:
    queued = await rejected(bus, "a")
    [letter] = await read_letters(bus, SUBJECTS)
    seq = await resend(bus, SUBJECTS, letter)
    async with bus.work(QUEUE, prefetch=0) as inbox:
        delivery = await anext(inbox)
        assert (delivery.seq, delivery.message) == (seq, queued)
        await delivery.ack()
    [letter] = await read_letters(bus, SUBJECTS)
    assert letter.resent_at is not None
    with pytest.raises(ConfigurationError, match="add --again"):
        await resend(bus, SUBJECTS, letter)
    assert await resend(bus, SUBJECTS, letter, again=True) > seq


async def test_a_copy_in_the_queue_is_enough(bus: JetStreamBus) -> None:
    queued = await rejected(bus, "a")
    await bus.append(SUBJECTS.tasks, SUBJECTS.task(queued.split, queued.episode), queued)
    [letter] = await read_letters(bus, SUBJECTS)
    with pytest.raises(ConfigurationError, match="holds a copy already"):
        await resend(bus, SUBJECTS, letter)


async def test_a_trajectory_is_not_sent_again_because_it_never_left(bus: JetStreamBus) -> None:
    ended = await play(bus, task("a"))
    judges = WorkQueue(
        stream=SUBJECTS.trajectories,
        name="judges_test",
        subject_filters=(SUBJECTS.everything("trajectory"),),
        ack_wait_s=5,
        max_deliver=-1,
    )
    await create_topology(bus, (), (judges,))
    async with bus.work(judges, prefetch=0) as inbox:
        await reject(bus, await anext(inbox), WORKER, "no judge")
    [letter] = await read_letters(bus, SUBJECTS)
    assert letter.message == ended
    with pytest.raises(ConfigurationError, match="is a log, not a queue: its record 1 is there"):
        await resend(bus, SUBJECTS, letter)


async def test_a_letter_that_leads_beside_its_queue_is_not_sent_again(bus: JetStreamBus) -> None:
    forged = judgement(trajectory(task("a")))
    subject = SUBJECTS.judgement(forged.split, forged.rubric, forged.episode)
    letter = DeadLetter(stream=SUBJECTS.tasks, consumer="c", seq=1, subject=subject, reason="r", data=encode(forged))
    await bus.dead_letter(letter)
    await bus.append_bytes(SUBJECTS.advisories, SUBJECTS.dead(SUBJECTS.tasks), GARBAGE)
    [letter_read] = await read_letters(bus, SUBJECTS)
    with pytest.raises(ConfigurationError, match="its subject is none of"):
        await resend(bus, SUBJECTS, letter_read)
    assert await bus.last_seq(SUBJECTS.judged) == 0


async def test_a_message_that_the_server_gave_up_is_listed_by_its_notice(bus: JetStreamBus) -> None:
    one_try = WorkQueue(
        stream=SUBJECTS.trajectories,
        name="one_try",
        subject_filters=(SUBJECTS.everything("trajectory"),),
        ack_wait_s=0.2,
        max_deliver=1,
    )
    await play(bus, task("a"))
    await create_topology(bus, (), (one_try,))
    async with bus.work(one_try, prefetch=0) as inbox:
        assert (await anext(inbox)).num_delivered == 1  # and is never acknowledged
        [letter] = await letters_when(bus, 1)
    assert (letter.stream, letter.seq, letter.kind, letter.is_queued) == (SUBJECTS.trajectories, 1, "Trajectory", True)
    assert letter.reason == "not acknowledged in 1 deliveries"
    assert not_resendable(SUBJECTS, letter) is not None


def command(run_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        millrace_command(["dead-letters", arguments[0], "--run-dir", str(run_dir), *arguments[1:]]),
        env={**millrace_environment(), "COLUMNS": "200"}, capture_output=True, text=True, check=False, timeout=HANGS_S,
    )  # fmt: skip


async def run_command(run_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return await anyio.to_thread.run_sync(lambda: command(run_dir, *arguments))


async def test_the_command(bus: JetStreamBus, tmp_path: Path) -> None:
    assert "no dead letters" in (await run_command(tmp_path, "list")).stdout
    queued = await rejected(bus, "a")
    await rejected(bus, "bad", GARBAGE)
    listed = [json.loads(line) for line in (await run_command(tmp_path, "list", "--json")).stdout.splitlines()]
    assert [(letter["message"], letter["reason"]) for letter in listed] == [
        ("Task", "cannot play a"),
        ("unreadable", "cannot play bad"),
    ]
    table = (await run_command(tmp_path, "list")).stdout
    assert queued.episode in table
    number, unreadable = str(listed[0]["number"]), str(listed[1]["number"])
    assert '"instruction": "click the button"' in (await run_command(tmp_path, "show", number)).stdout
    assert GARBAGE.hex() in (await run_command(tmp_path, "show", unreadable)).stdout
    resent = await run_command(tmp_path, "resend", number)
    assert (resent.returncode, resent.stdout) == (0, f"letter {number} is record 3 of {SUBJECTS.tasks}\n")
    refused = await run_command(tmp_path, "resend", number)
    assert refused.returncode == 78
    assert "add --again" in refused.stderr
    everything = await run_command(tmp_path, "resend", "--all")
    assert f"letter {number} left: it was sent again before" in everything.stdout
    assert f"letter {unreadable} is record 4" in everything.stdout
    assert (await run_command(tmp_path, "show", "99")).returncode == 78
    assert len(await read_letters(bus, SUBJECTS)) == 2
    assert numbered(await read_letters(bus, SUBJECTS), int(number)).resent_at is not None
