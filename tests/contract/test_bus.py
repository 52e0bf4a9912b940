"""What every bus keeps to: writing, reading, queues, tails, listening, offers and leases."""

import itertools
import time
from collections.abc import Awaitable
from typing import Protocol, TypeVar

import anyio
import msgspec
import pytest
import structlog

from bus.backpressure import append_when_room
from bus.codec import decode, encode
from bus.ports import Delivery, Expect, Inbox, Offered
from bus.topology import task_queue, trajectory_queue
from schemas.errors import BusUnavailable, ChainConflict, MessageCorrupt, MessageTooLarge, StreamFull
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import DeadLetter, EpisodeCancel, Split, StepWake, Task, Trajectory
from tests.builders import WORKER, checkpoint, observation, step_request, task, trajectory
from tests.contract.backends import CONFIG, RUBRIC, SUBJECTS, Backend, watched
from tests.deadlines import HANGS_S
from tests.support.polling import until

pytestmark = pytest.mark.anyio
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
TASKS = task_queue(SUBJECTS, CONFIG, Split.TRAIN)
TRAJECTORIES = trajectory_queue(SUBJECTS, CONFIG, RUBRIC)
"""What somebody else has comes from it within a test only when it was handed back."""
assert TRAJECTORIES.ack_wait_s > 10 * HANGS_S
NOTHING_COMES_S = 0.3


class Source(Protocol[T_co]):
    def __anext__(self) -> Awaitable[T_co]: ...


async def soon(items: Source[T]) -> T:
    with anyio.fail_after(HANGS_S):
        return await items.__anext__()


async def nothing_comes(items: Source[object]) -> bool:
    with anyio.move_on_after(NOTHING_COMES_S):
        await items.__anext__()
        return False
    return True


async def announce(backend: Backend, *versions: int) -> None:
    for version in versions:
        await backend.bus.append(SUBJECTS.checkpoints, SUBJECTS.checkpoint(PolicyVersion(version)), checkpoint(version))


async def queue_task(backend: Backend, name: str) -> Task:
    queued = task(name)
    await backend.bus.append(SUBJECTS.tasks, SUBJECTS.task(queued.split, queued.episode), queued)
    return queued


async def queue_trajectory(backend: Backend, name: str) -> Trajectory:
    queued = trajectory(task(name))
    await backend.bus.append(SUBJECTS.trajectories, SUBJECTS.trajectory(queued.task.split, queued.episode), queued)
    return queued


class TestAppend:
    async def test_sequences_count_up(self, backend: Backend) -> None:
        subject = SUBJECTS.checkpoint(PolicyVersion(1))
        first = await backend.bus.append(SUBJECTS.checkpoints, subject, checkpoint(1))
        assert await backend.bus.append(SUBJECTS.checkpoints, subject, checkpoint(2)) == first + 1
        assert await backend.bus.last_seq(SUBJECTS.checkpoints) == first + 1

    async def test_a_condition_that_holds_lets_it_in(self, backend: Backend) -> None:
        subject = SUBJECTS.checkpoint(PolicyVersion(1))
        seq = await backend.bus.append(SUBJECTS.checkpoints, subject, checkpoint(1), expect=Expect(subject, 0))
        assert await backend.bus.append(SUBJECTS.checkpoints, subject, checkpoint(2), expect=Expect(subject, seq)) > seq

    async def test_a_condition_that_does_not_hold_keeps_it_out(self, backend: Backend) -> None:
        subject = SUBJECTS.checkpoint(PolicyVersion(1))
        await backend.bus.append(SUBJECTS.checkpoints, subject, checkpoint(1))
        with pytest.raises(ChainConflict):
            await backend.bus.append(SUBJECTS.checkpoints, subject, checkpoint(2), expect=Expect(subject, 0))

    async def test_one_of_many_at_once_gets_in(self, backend: Backend) -> None:
        subject, outcomes = SUBJECTS.checkpoint(PolicyVersion(1)), list[bool]()

        async def attempt(version: int) -> None:
            bus = backend.bus if version % 2 else backend.other
            try:
                await bus.append(SUBJECTS.checkpoints, subject, checkpoint(version), expect=Expect(subject, 0))
            except ChainConflict:
                outcomes.append(False)
            else:
                outcomes.append(True)

        async with anyio.create_task_group() as group:
            for version in range(8):
                group.start_soon(attempt, version)
        assert sorted(outcomes) == [False] * 7 + [True]

    async def test_a_second_copy_of_a_task_is_refused_until_the_first_is_done(self, backend: Backend) -> None:
        await queue_task(backend, "a")
        with pytest.raises(StreamFull):
            await queue_task(backend, "a")
        async with backend.bus.work(TASKS, prefetch=0) as inbox:
            await (await soon(inbox)).ack()
        await queue_task(backend, "a")

    @pytest.mark.usefixtures("answers_may_take_their_time")
    async def test_a_missing_stream_is_said_so(self, backend: Backend) -> None:
        with pytest.raises(BusUnavailable, match="does not exist"):
            await backend.impatient.append("test_NOWHERE", "test.nowhere", checkpoint(1))
        with pytest.raises(BusUnavailable, match="does not exist"):
            await backend.impatient.last("test_NOWHERE", "test.nowhere")
        with pytest.raises(BusUnavailable, match="does not exist"):
            async with backend.impatient.tail("test_NOWHERE", "test.nowhere"):
                pass

    async def test_bytes_are_stored_as_they_are(self, backend: Backend) -> None:
        """A copied record keeps its identity, fields of a newer writer included."""
        newer = msgspec.msgpack.decode(encode(checkpoint(1))) | {"added_later": 1}
        data, subject = msgspec.msgpack.encode(newer), SUBJECTS.checkpoint(PolicyVersion(1))
        seq = await backend.bus.append_bytes(SUBJECTS.checkpoints, subject, data, expect=Expect(subject, 0))
        record = await backend.other.get(SUBJECTS.checkpoints, seq)
        assert record is not None
        assert (record.data, record.message) == (data, checkpoint(1))

    async def test_a_record_that_is_sent_again_is_found_where_it_stands(self, backend: Backend) -> None:
        """Whoever heard no answer knows by that what became of it, however long ago he sent it, and over which connection."""
        data, subject = encode(checkpoint(1)), SUBJECTS.checkpoint(PolicyVersion(1))
        seq = await backend.bus.append_bytes(SUBJECTS.checkpoints, subject, data, expect=Expect(subject, 0))
        for bus in (backend.bus, backend.other):
            assert await bus.append_bytes(SUBJECTS.checkpoints, subject, data, expect=Expect(subject, 0)) == seq
        with pytest.raises(ChainConflict):
            await backend.bus.append(SUBJECTS.checkpoints, subject, checkpoint(2), expect=Expect(subject, 0))
        assert await backend.bus.last_seq(SUBJECTS.checkpoints) == seq

    async def test_the_newest_record_is_confirmed(self, backend: Backend) -> None:
        everything = SUBJECTS.everything("checkpoint")
        assert await backend.bus.confirmed_last(SUBJECTS.checkpoints, everything) is None
        for version in (1, 2):
            await backend.bus.append(SUBJECTS.checkpoints, SUBJECTS.checkpoint(PolicyVersion(version)), checkpoint(version))
        newest = await backend.other.confirmed_last(SUBJECTS.checkpoints, everything)
        assert newest is not None
        assert (newest, newest.data) == (await backend.bus.last(SUBJECTS.checkpoints, everything), encode(checkpoint(2)))

    async def test_a_dead_letter_that_is_written_again_is_one(self, backend: Backend) -> None:
        letter = DeadLetter(
            stream=SUBJECTS.tasks, consumer="c", seq=7, subject="s", reason="unreadable", data=b"?", worker=WorkerId("w")
        )
        for bus in (backend.bus, backend.other, backend.bus):
            await bus.dead_letter(letter)
        await backend.bus.dead_letter(msgspec.structs.replace(letter, seq=8))
        stored = await backend.bus.read_bytes(SUBJECTS.advisories, SUBJECTS.dead(SUBJECTS.tasks))
        assert [decode(one.data) for one in stored] == [letter, msgspec.structs.replace(letter, seq=8)]

    async def test_a_full_stream_refuses_until_there_is_room(self, backend: Backend) -> None:
        for index in range(CONFIG.max_queued_tasks):
            await queue_task(backend, f"t{index}")
        with pytest.raises(StreamFull):
            await queue_task(backend, "more")
        async with backend.bus.work(TASKS, prefetch=0) as inbox:
            await (await soon(inbox)).ack()
        await queue_task(backend, "more")

    async def test_a_writer_waits_for_room(self, backend: Backend) -> None:
        for index in range(CONFIG.max_queued_tasks):
            await queue_task(backend, f"t{index}")
        more, stored = task("more"), anyio.Event()

        async def write() -> None:
            subject = SUBJECTS.task(more.split, more.episode)
            await append_when_room(backend.bus, SUBJECTS.tasks, subject, more)
            stored.set()

        async with backend.other.work(TASKS, prefetch=0) as inbox, anyio.create_task_group() as group:
            with structlog.testing.capture_logs() as logs:

                async def waits() -> bool:
                    return any(log["event"] == "stream_full_waiting" for log in logs)

                group.start_soon(write)
                await until(waits)
                assert not stored.is_set()
                await (await soon(inbox)).ack()
                with anyio.fail_after(HANGS_S):
                    await stored.wait()
        assert [log["event"] for log in logs if log["event"].startswith("stream_")] == [
            "stream_full_waiting",
            "stream_has_room",
        ]

    async def test_a_message_that_is_too_large_is_said_so(self, backend: Backend) -> None:
        of = task()
        large = observation(of, data=bytes(CONFIG.max_payload_bytes))
        with pytest.raises(MessageTooLarge, match="max_payload_bytes"):
            await backend.bus.append(SUBJECTS.episodes(0), SUBJECTS.chain_record(of.episode, 1, "obs", 0), large)
        await announce(backend, 1)  # the connection goes on


class TestRead:
    async def test_get_returns_what_was_appended(self, backend: Backend) -> None:
        sent = observation(task(), data=bytes(range(256)) * 500)
        subject = SUBJECTS.chain_record(sent.episode, 1, "obs", 0)
        seq = await backend.bus.append(SUBJECTS.episodes(0), subject, sent)
        record = await backend.other.get(SUBJECTS.episodes(0), seq)
        assert record is not None
        assert (record.stream, record.subject, record.seq, record.message) == (SUBJECTS.episodes(0), subject, seq, sent)
        assert record.data == encode(sent)
        assert abs(record.time_s - time.time()) < 60
        assert await backend.bus.get(SUBJECTS.episodes(0), seq + 1) is None

    async def test_last_is_the_newest_under_a_filter(self, backend: Backend) -> None:
        filter_all = SUBJECTS.everything("checkpoint")
        assert await backend.bus.last(SUBJECTS.checkpoints, filter_all) is None
        await announce(backend, 3, 1, 2)
        newest = await backend.bus.last(SUBJECTS.checkpoints, filter_all)
        assert newest is not None
        assert newest.message == checkpoint(2)

    async def test_history_is_the_newest_of_every_subject_oldest_first(self, backend: Backend) -> None:
        await announce(backend, 3, 1, 2, 1)
        found = await backend.bus.history(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))
        assert [record.message for record in found] == [checkpoint(3), checkpoint(2), checkpoint(1)]
        assert await backend.bus.history(SUBJECTS.judged, SUBJECTS.judgements(None)) == []

    @pytest.mark.parametrize("number", [300, 1100], ids=["several batches", "more than a batched get covers"])
    async def test_history_has_no_limit(self, backend: Backend, number: int) -> None:
        await announce(backend, *range(number))
        found = await backend.bus.history(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))
        assert [record.message for record in found] == [checkpoint(version) for version in range(number)]
        assert len(await backend.bus.subjects(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))) == number

    async def test_history_of_large_records(self, backend: Backend) -> None:
        of = task()
        for step in range(50):
            subject = SUBJECTS.chain_record(of.episode, 1, "obs", step)
            await backend.bus.append(SUBJECTS.episodes(0), subject, observation(of, step, data=bytes(400_000)))
        found = await backend.bus.history(SUBJECTS.episodes(0), SUBJECTS.chain(of.episode))
        assert [record.seq for record in found] == list(range(1, 51))

    async def test_subjects_are_counted(self, backend: Backend) -> None:
        await announce(backend, 1, 2, 2)
        counts = await backend.bus.subjects(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))
        assert counts == {SUBJECTS.checkpoint(PolicyVersion(1)): 1, SUBJECTS.checkpoint(PolicyVersion(2)): 2}

    async def test_corrupt_bytes_are_never_a_message(self, backend: Backend) -> None:
        await backend.bus.append_bytes(SUBJECTS.checkpoints, SUBJECTS.checkpoint(PolicyVersion(1)), b"\xc1 garbage")
        with pytest.raises(MessageCorrupt):
            await backend.bus.get(SUBJECTS.checkpoints, 1)
        with pytest.raises(MessageCorrupt) as refused:
            await backend.bus.last(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))
        assert (refused.value.subject, refused.value.seq) == (SUBJECTS.checkpoint(PolicyVersion(1)), 1)
        await announce(backend, 2)
        (record,) = await backend.bus.history(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))
        assert record.seq == 2

    async def test_a_record_that_belongs_elsewhere_is_no_message(self, backend: Backend) -> None:
        mine, other = task("mine"), task("other")
        subject = SUBJECTS.chain_record(mine.episode, 1, "obs", 0)
        await backend.bus.append(SUBJECTS.episodes(0), subject, observation(other))
        with pytest.raises(MessageCorrupt, match="belongs under"):
            await backend.bus.last(SUBJECTS.episodes(0), subject)


class TestWork:
    async def test_every_message_goes_to_one_worker(self, backend: Backend) -> None:
        sent = {(await queue_trajectory(backend, f"t{index}")).episode for index in range(20)}
        received = list[str]()
        all_there = anyio.Event()

        async def serve(inbox: Inbox) -> None:
            async for delivery in inbox:
                assert isinstance(delivery.message, Trajectory)
                received.append(delivery.message.episode)
                await delivery.ack()
                if len(received) == len(sent):
                    all_there.set()

        async with (
            backend.bus.work(TRAJECTORIES, prefetch=0) as here,
            backend.other.work(TRAJECTORIES, prefetch=2) as there,
            anyio.create_task_group() as group,
        ):
            for inbox in (here, here, there):
                group.start_soon(serve, inbox)
            with anyio.fail_after(HANGS_S):
                await all_there.wait()
            group.cancel_scope.cancel()
        assert sorted(received) == sorted(sent)

    async def test_a_delivery_says_what_it_is(self, backend: Backend) -> None:
        queued = await queue_task(backend, "a")
        async with backend.bus.work(TASKS, prefetch=0) as inbox:
            delivery = await soon(inbox)
            assert delivery.message == queued
            assert delivery.subject == SUBJECTS.task(queued.split, queued.episode)
            assert (delivery.stream, delivery.consumer, delivery.queue) == (TASKS.stream, TASKS.name, TASKS)
            assert (delivery.seq, delivery.num_delivered) == (1, 1)
            await delivery.ack()

    async def test_only_its_own_split(self, backend: Backend) -> None:
        await queue_task(backend, "a")
        async with backend.bus.work(task_queue(SUBJECTS, CONFIG, Split.EVAL), prefetch=0) as inbox:
            assert await nothing_comes(inbox)

    async def test_an_unacknowledged_delivery_comes_again(self, backend: Backend) -> None:
        await queue_task(backend, "a")
        async with backend.bus.work(TASKS, prefetch=0) as inbox:
            assert (await soon(inbox)).num_delivered == 1
            again = await soon(inbox)
            assert again.num_delivered == 2
            await again.ack()
            assert await nothing_comes(inbox)

    async def test_work_in_progress_is_left_alone(self, backend: Backend) -> None:
        for number in itertools.count():
            await queue_task(backend, f"t{number}")
            again = list[Delivery]()
            async with backend.bus.work(TASKS, prefetch=0) as inbox, watched(backend.other, TASKS) as stall:
                delivery = await soon(inbox)
                for _ in range(6):
                    with anyio.move_on_after(TASKS.ack_wait_s / 3):
                        again.append(await anext(inbox))
                    await delivery.in_progress()
                await delivery.ack()
            if not stall.spoils(TASKS):
                assert again == []
                break

    async def test_a_late_nak_takes_nothing_from_its_next_owner(self, backend: Backend) -> None:
        await queue_task(backend, "a")
        async with backend.bus.work(TASKS, prefetch=0) as inbox:
            late, _ = await soon(inbox), await soon(inbox)
            await anyio.sleep(TASKS.ack_wait_s)  # the server's lease began before ours
            await late.nak(10 * HANGS_S)
            assert (await soon(inbox)).num_delivered == 3

    async def test_a_nak_brings_it_back_after_its_delay(self, backend: Backend) -> None:
        await queue_trajectory(backend, "a")
        async with backend.bus.work(TRAJECTORIES, prefetch=0) as inbox:
            await (await soon(inbox)).nak()
            again = await soon(inbox)
            began = anyio.current_time()
            await again.nak(0.4)
            third = await soon(inbox)
            assert anyio.current_time() - began > 0.35
            assert third.num_delivered == 3
            await third.ack()

    async def test_a_terminated_delivery_never_comes_back(self, backend: Backend) -> None:
        await queue_task(backend, "a")
        async with backend.bus.work(TASKS, prefetch=0) as inbox:
            await (await soon(inbox)).term("unwanted")

            async def is_gone() -> bool:
                return not await backend.bus.subjects(TASKS.stream, ">")

            await until(is_gone)
            assert await nothing_comes(inbox)
        await queue_task(backend, "a")

    async def test_what_is_not_begun_is_handed_back_on_leaving(self, backend: Backend) -> None:
        sent = {(await queue_trajectory(backend, f"t{index}")).episode for index in range(5)}
        begun = list[Delivery]()
        async with backend.bus.work(TRAJECTORIES, prefetch=4) as inbox:
            begun.append(await soon(inbox))
            await begun[0].ack()
        async with backend.other.work(TRAJECTORIES, prefetch=0) as inbox:
            for _ in range(4):
                begun.append(await soon(inbox))
                await begun[-1].ack()
        assert {delivery.message.episode for delivery in begun if isinstance(delivery.message, Trajectory)} == sent

    async def test_nothing_is_held_for_a_task_that_stopped_waiting(self, backend: Backend) -> None:
        async with backend.bus.work(TRAJECTORIES, prefetch=0) as inbox:
            assert await nothing_comes(inbox)  # asked for one, and gave up
            await queue_trajectory(backend, "a")
            async with backend.other.work(TRAJECTORIES, prefetch=0) as there:
                await (await soon(there)).ack()

    async def test_depth_tells_waiting_from_in_flight(self, backend: Backend) -> None:
        for index in range(3):
            await queue_task(backend, f"t{index}")
        async with backend.bus.work(TASKS, prefetch=0) as inbox:
            delivery = await soon(inbox)
            depth = await backend.bus.depth(TASKS)
            assert depth is not None
            assert (depth.num_pending, depth.num_in_flight, depth.acked_seq) == (2, 1, 0)
            await delivery.ack()
            depth = await backend.bus.depth(TASKS)
            assert depth is not None
            assert depth.acked_seq == 1

    async def test_a_stream_says_how_it_stands(self, backend: Backend) -> None:
        began = time.time()
        for index in range(3):
            await queue_task(backend, f"t{index}")
        state = await backend.bus.stream_state(SUBJECTS.tasks)
        assert (state.num_messages, state.last_seq, state.max_messages) == (3, 3, CONFIG.max_queued_tasks)
        assert (state.max_bytes, state.leader, state.replicas) == (0, None, ())
        assert state.num_bytes > 0
        assert began - 1 < state.oldest_s < time.time() + 1
        empty = await backend.bus.stream_state(SUBJECTS.judged)
        assert (empty.num_messages, empty.oldest_s) == (0, 0.0)
        assert (await backend.bus.store_state()).num_bytes >= state.num_bytes

    @pytest.mark.usefixtures("answers_may_take_their_time")
    async def test_a_queue_that_no_administrator_created_is_said_so(self, backend: Backend) -> None:
        missing = trajectory_queue(SUBJECTS, CONFIG, "nobody_v1")
        with pytest.raises(BusUnavailable, match=r"the queue judges_nobody_v1 .* does not exist"):
            async with backend.impatient.work(missing, prefetch=0):
                pass
        assert await backend.bus.depth(missing) is None
        async with backend.bus.work(TRAJECTORIES, prefetch=0) as inbox:
            assert await nothing_comes(inbox)

    async def test_corrupt_bytes_are_delivered_and_say_so(self, backend: Backend) -> None:
        await backend.bus.append_bytes(SUBJECTS.tasks, SUBJECTS.task(Split.TRAIN, task().episode), b"\xc1")
        async with backend.bus.work(TASKS, prefetch=0) as inbox:
            delivery = await soon(inbox)
            assert delivery.data == b"\xc1"
            with pytest.raises(MessageCorrupt):
                _ = delivery.message
            await delivery.term("corrupt")


class TestTail:
    async def test_old_and_new_records_in_order(self, backend: Backend) -> None:
        await announce(backend, 1, 2)
        async with backend.other.tail(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint")) as records:
            await announce(backend, 3)
            found = [await soon(records) for _ in range(3)]
            assert await nothing_comes(records)
        assert [(record.seq, record.message) for record in found] == [(seq, checkpoint(seq)) for seq in (1, 2, 3)]

    async def test_it_resumes_behind_a_sequence(self, backend: Backend) -> None:
        await announce(backend, 1, 2, 3)
        async with backend.bus.tail(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"), after_seq=2) as records:
            assert (await soon(records)).seq == 3

    async def test_only_new_ones(self, backend: Backend) -> None:
        await announce(backend, 1, 2)
        async with backend.bus.tail(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"), only_new=True) as records:
            await announce(backend, 3)
            assert (await soon(records)).seq == 3

    async def test_from_a_time_on(self, backend: Backend) -> None:
        await announce(backend, 1, 2, 3)
        second = await backend.bus.get(SUBJECTS.checkpoints, 2)
        assert second is not None
        filter_all = SUBJECTS.everything("checkpoint")
        async with backend.other.tail(SUBJECTS.checkpoints, filter_all, since_s=second.time_s) as records:
            assert [(await soon(records)).seq for _ in range(2)] == [2, 3]
        async with backend.other.tail(SUBJECTS.checkpoints, filter_all, since_s=time.time() + 3600) as records:
            assert await nothing_comes(records)

    async def test_it_wakes_at_once(self, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
        # What does not wake it does not come.
        monkeypatch.setattr("bus.jetstream.tail._POLL_S", 10 * HANGS_S)
        async with backend.other.tail(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint")) as records:
            assert await nothing_comes(records)
            for version in range(1, 11):
                await announce(backend, version)
                assert (await soon(records)).seq == version

    async def test_a_stream_of_screenshots(self, backend: Backend) -> None:
        of = task()
        async with backend.other.tail(SUBJECTS.episodes(0), SUBJECTS.chain(of.episode)) as records:
            for step in range(3):
                subject = SUBJECTS.chain_record(of.episode, 1, "obs", step)
                await backend.bus.append(SUBJECTS.episodes(0), subject, observation(of, step))
                assert (await soon(records)).message == observation(of, step)

    async def test_a_long_stream(self, backend: Backend) -> None:
        await announce(backend, *range(1000))
        async with backend.bus.tail(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint")) as records:
            assert [(await soon(records)).seq for _ in range(1000)] == list(range(1, 1001))

    async def test_a_filter(self, backend: Backend) -> None:
        await announce(backend, 1, 2, 1)
        async with backend.bus.tail(SUBJECTS.checkpoints, SUBJECTS.checkpoint(PolicyVersion(1))) as records:
            assert [(await soon(records)).seq for _ in range(2)] == [1, 3]

    async def test_it_ends_with_a_record(self, backend: Backend) -> None:
        await announce(backend, 1, 2, 1)
        assert await ending(backend, 2) == [1, 2]
        assert await ending(backend, 2, version=1) == [1]
        assert await ending(backend, 2, after_seq=2) == []

    async def test_it_does_not_wait_for_an_end_that_is_gone(self, backend: Backend) -> None:
        await announce(backend, 1, 2, 1)
        await backend.bus.purge(SUBJECTS.checkpoints, SUBJECTS.checkpoint(PolicyVersion(1)))
        assert await ending(backend, 3) == [2]
        await backend.bus.purge(SUBJECTS.checkpoints, ">")
        assert await ending(backend, 3) == []

    async def test_corrupt_records_are_skipped(self, backend: Backend) -> None:
        await backend.bus.append_bytes(SUBJECTS.checkpoints, SUBJECTS.checkpoint(PolicyVersion(1)), b"\xc1")
        await announce(backend, 2)
        async with backend.bus.tail(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint")) as records:
            assert (await soon(records)).message == checkpoint(2)


async def ending(backend: Backend, end_seq: int, *, version: int | None = None, after_seq: int = 0) -> list[int]:
    """Sequences that a reader to an end is given."""
    every = SUBJECTS.everything("checkpoint") if version is None else SUBJECTS.checkpoint(PolicyVersion(version))
    async with backend.other.tail(SUBJECTS.checkpoints, every, after_seq=after_seq, end_seq=end_seq) as records:
        with anyio.fail_after(HANGS_S):
            return [record.seq async for record in records]


class TestListen:
    async def test_an_accepted_action_is_republished_with_its_sequence(self, backend: Backend) -> None:
        of = task()
        async with backend.other.listen(SUBJECTS.live(of.episode, 1)) as heard:
            subject = SUBJECTS.chain_record(of.episode, 1, "act", 0)
            seq = await backend.bus.append(SUBJECTS.episodes(0), subject, step_request(of))
            record = await soon(heard)
        assert (record.seq, record.message) == (seq, step_request(of))

    async def test_what_is_told_is_heard_by_all_who_listen(self, backend: Backend) -> None:
        cancel = EpisodeCancel(episodes=(task().episode,), reason="late")
        async with backend.bus.listen(SUBJECTS.cancel) as here, backend.other.listen(SUBJECTS.cancel) as there:
            await backend.bus.tell(SUBJECTS.cancel, cancel)
            for heard in (here, there):
                record = await soon(heard)
                assert (record.seq, record.message) == (0, cancel)

    async def test_other_subjects_are_not_heard(self, backend: Backend) -> None:
        of = task()
        async with backend.bus.listen(SUBJECTS.live(of.episode, 2)) as heard:
            subject = SUBJECTS.chain_record(of.episode, 1, "act", 0)
            await backend.bus.append(SUBJECTS.episodes(0), subject, step_request(of))
            assert await nothing_comes(heard)


class TestOffers:
    WAKE = StepWake(episode=task().episode, attempt=1, step=0, observation_seq=1)
    SUBJECT = SUBJECTS.wake(WORKER)

    async def test_it_is_taken_or_declined(self, backend: Backend) -> None:
        heard = list[object]()

        def accept(message: object) -> bool:
            heard.append(message)
            return len(heard) == 1

        async with backend.other.offers(self.SUBJECT, accept):
            assert [await backend.bus.offer(self.SUBJECT, self.WAKE, timeout_s=HANGS_S) for _ in range(2)] == [
                Offered.TAKEN,
                Offered.DECLINED,
            ]
        assert heard == [self.WAKE, self.WAKE]

    async def test_nobody_there_is_known_at_once(self, backend: Backend) -> None:
        with anyio.fail_after(HANGS_S):
            assert await backend.bus.offer(self.SUBJECT, self.WAKE, timeout_s=10 * HANGS_S) is Offered.ABSENT
            async with backend.other.offers(self.SUBJECT, lambda _: True):
                pass
            assert await backend.bus.offer(self.SUBJECT, self.WAKE, timeout_s=10 * HANGS_S) is Offered.ABSENT

    async def test_silence_is_no(self, backend: Backend) -> None:
        async with backend.other.listen(self.SUBJECT):
            offered = await backend.bus.offer(self.SUBJECT, self.WAKE, timeout_s=0.1)
            assert offered is Offered.SILENT
            assert not offered


class TestLease:
    async def test_one_holder_at_a_time_and_the_next_at_once(self, backend: Backend) -> None:
        holders = list[str]()
        first_holds, first_leaves = anyio.Event(), anyio.Event()

        async def first() -> None:
            async with backend.bus.lease("feeder", ttl_s=HANGS_S):
                holders.append("first")
                first_holds.set()
                await first_leaves.wait()
                holders.append("first leaves")

        async def second() -> None:
            await first_holds.wait()
            async with backend.other.lease("feeder", ttl_s=HANGS_S):
                holders.append("second")

        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                group.start_soon(first)
                group.start_soon(second)
                await first_holds.wait()
                with anyio.move_on_after(NOTHING_COMES_S):
                    await anyio.sleep_forever()
                first_leaves.set()
        assert holders == ["first", "first leaves", "second"]

    async def test_two_names_are_two_leases(self, backend: Backend) -> None:
        with anyio.fail_after(HANGS_S):
            async with backend.bus.lease("a", ttl_s=HANGS_S), backend.other.lease("b", ttl_s=HANGS_S):
                pass
