"""What a consumer of a run's streams may rely on: order, filters, ends, evidence, and its place when it comes again."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import anyio
import pytest

from bus import BEGINNING, NEW, After, Item, Run, Stream
from bus.background import companion_group
from bus.consumer.position import DurablePlace
from bus.ports import Bus, Record
from bus.stored import newest_readable
from schemas.errors import BusUnavailable, ConfigurationError, PositionTaken, RecordGone
from schemas.ids import PolicyVersion
from schemas.messages import AnyMessage, JudgeCall, Outcome, Position, Split, Task
from tests.builders import RUN, checkpoint, task
from tests.contract.backends import SUBJECTS, Backend
from tests.deadlines import HANGS_S
from tests.support.bus.played import judge, play

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def opened(bus: Bus) -> AsyncIterator[Run]:
    async with companion_group() as group:
        run = Run(bus, SUBJECTS, group)
        try:
            yield run
        finally:
            await run.aclose()


@pytest.fixture
async def run(backend: Backend) -> AsyncIterator[Run]:
    async with opened(backend.other) as run:
        yield run


async def several(backend: Backend, *names: str, split: Split = Split.TRAIN) -> list[Task]:
    tasks = [task(name, split=split) for name in names]
    for played in tasks:
        await play(backend.bus, played)
    return tasks


async def read(stream: Stream[AnyMessage]) -> list[Item[AnyMessage]]:
    """Everything up to the stream's present end."""
    with anyio.fail_after(HANGS_S):
        return [item async for item in stream]


async def names(stream: object) -> list[str]:
    return [_name(item.message) for item in await read(stream)]  # type: ignore[arg-type]


def _name(message: AnyMessage) -> str:
    return str(getattr(message, "episode", "")).split("-")[2]


class TestOrderAndFilters:
    async def test_trajectories_in_order_to_the_present_end(self, backend: Backend, run: Run) -> None:
        before = time.time()
        tasks = await several(backend, "a", "b", "c")
        items = [item async for item in run.trajectories(follow=False)]
        assert [item.message.task for item in items] == tasks
        assert [item.seq for item in items] == [1, 2, 3]
        assert {item.stream for item in items} == {SUBJECTS.trajectories}
        assert items[0].subject == SUBJECTS.trajectory(Split.TRAIN, tasks[0].episode)
        assert before - 1 < items[0].time.timestamp() < time.time() + 1

    async def test_an_empty_stream_ends_at_once(self, run: Run) -> None:
        assert await names(run.trajectories(follow=False)) == []
        assert await names(run.observations(follow=False)) == []
        assert await names(run.trajectories(follow=False, start=NEW)) == []

    async def test_following_waits_for_what_comes(self, backend: Backend, run: Run) -> None:
        await several(backend, "old")
        async with run.trajectories(start=NEW) as items:
            await several(backend, "new")
            with anyio.fail_after(HANGS_S):
                assert _name((await anext(items)).message) == "new"

    async def test_the_split_is_chosen_by_subject(self, backend: Backend, run: Run) -> None:
        await several(backend, "a")
        await several(backend, "b", split=Split.EVAL)
        assert await names(run.trajectories(split="eval", follow=False)) == ["b"]
        assert await names(run.trajectories(split=Split.TRAIN, follow=False)) == ["a"]
        with pytest.raises(ConfigurationError, match="train, eval"):
            run.trajectories(split="test")

    async def test_outcome_reward_task_and_episode(self, backend: Backend, run: Run) -> None:
        a, b, c = task("a"), task("b"), task("c")
        await play(backend.bus, a, outcome=Outcome.ANSWERED, reward=1.0)
        await play(backend.bus, b, outcome=Outcome.FAILED, reward=None)
        await play(backend.bus, c, outcome=Outcome.STEP_LIMIT, reward=0.25)
        assert await names(run.trajectories(outcome="answered", follow=False)) == ["a"]
        assert await names(run.trajectories(outcome=["failed", "step_limit"], follow=False)) == ["b", "c"]
        assert await names(run.trajectories(min_reward=0.2, max_reward=0.5, follow=False)) == ["c"]
        assert await names(run.trajectories(episode=b.episode, follow=False)) == ["b"]
        assert await names(run.trajectories(task="c", follow=False)) == ["c"]

    async def test_judgements_by_reward_and_verdict(self, backend: Backend, run: Run) -> None:
        for name, reward in (("a", 1.0), ("b", 0.0), ("c", None)):
            await judge(backend.bus, await play(backend.bus, task(name)), reward)
        assert await names(run.judgements(follow=False)) == ["a", "b", "c"]
        assert await names(run.judgements(min_reward=0.5, follow=False)) == ["a"]
        assert await names(run.judgements(verdict="excluded", follow=False)) == ["c"]
        assert await names(run.judgements(rubric="another", follow=False)) == []

    async def test_what_models_answered_by_episode_rubric_and_stage(self, backend: Backend, run: Run) -> None:
        for name, rubric, stage in (("a", "r_v1", "blocking"), ("a", "r_v1", "criterion_b"), ("b", "r_v2", "criterion_b")):
            call = JudgeCall(
                episode=task(name).episode, rubric=rubric, stage=stage, question=stage, answer=0, model="m", text="{}",
                accepted=True,
            )  # fmt: skip
            await backend.bus.append(SUBJECTS.calls, SUBJECTS.call(rubric, call.episode, stage, 0), call)

        async def calls(**filters: str) -> list[tuple[str, str]]:
            return [(_name(item.message), item.message.stage) async for item in run.calls(follow=False, **filters)]  # type: ignore[arg-type]

        assert await calls() == [("a", "blocking"), ("a", "criterion_b"), ("b", "criterion_b")]
        assert await calls(rubric="r_v1") == [("a", "blocking"), ("a", "criterion_b")]
        assert await calls(stage="criterion_b") == [("a", "criterion_b"), ("b", "criterion_b")]
        assert await calls(episode=task("b").episode, stage="blocking") == []

    async def test_checkpoints_by_version(self, backend: Backend, run: Run) -> None:
        for version in range(4):
            await backend.bus.append(SUBJECTS.checkpoints, SUBJECTS.checkpoint(PolicyVersion(version)), checkpoint(version))
        found = [item.message.version async for item in run.checkpoints(version=range(1, 3), follow=False)]
        assert found == [1, 2]

    async def test_observations_and_steps_of_an_episode(self, backend: Backend, run: Run) -> None:
        a = task("a")
        await play(backend.bus, a, num_steps=3)
        await several(backend, "b")
        seen = [item.message async for item in run.observations(episode=a.episode, follow=False)]
        assert [(of.episode, of.step) for of in seen] == [(a.episode, 0), (a.episode, 1), (a.episode, 2)]
        answered = [item.message.step async for item in run.steps(episode=a.episode, follow=False)]
        assert answered == [0, 1, 2]
        assert len([item async for item in run.observations(follow=False)]) == 4

    async def test_from_a_sequence_and_from_a_time(self, backend: Backend, run: Run) -> None:
        await several(backend, "a", "b")
        [_, second] = await read(run.trajectories(follow=False))  # type: ignore[arg-type]
        assert await names(run.trajectories(start=After(1), follow=False)) == ["b"]
        assert await names(run.trajectories(start=After(2), follow=False)) == []
        assert await names(run.trajectories(start=second.time, follow=False)) == ["b"]
        assert await names(run.trajectories(start=datetime.now(UTC), follow=False)) == []

    async def test_a_corrupt_last_record_is_not_waited_for(self, backend: Backend, run: Run) -> None:
        [of] = await several(backend, "a")
        await backend.bus.append_bytes(SUBJECTS.trajectories, SUBJECTS.trajectory(of.split, of.episode), b"\xc1 garbage")
        assert await names(run.trajectories(follow=False)) == ["a"]

    async def test_an_end_that_ages_out_is_not_waited_for(
        self, backend: Backend, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def aged_out_then(bus: Bus, stream: str, subject_filter: str) -> Record | None:
            newest = await newest_readable(bus, stream, subject_filter)
            await backend.bus.purge(stream, subject_filter)
            return newest

        monkeypatch.setattr("bus.consumer.source.newest_readable", aged_out_then)
        await several(backend, "a", "b", "c")
        assert await names(run.trajectories(follow=False)) == []

    async def test_a_stream_that_is_closed_has_ended(self, backend: Backend, run: Run) -> None:
        await several(backend, "a")
        items = run.trajectories()
        async with items:
            assert _name((await anext(items)).message) == "a"
        with pytest.raises(StopAsyncIteration):
            await anext(items)


class TestEvidence:
    @pytest.mark.parametrize("screenshots", [False, True])
    async def test_screenshots_belong_to_their_steps(self, backend: Backend, run: Run, screenshots: bool) -> None:
        await judge(backend.bus, await play(backend.bus, task("a"), num_steps=2))
        [item] = [item async for item in run.judgements(follow=False, screenshots=screenshots)]
        assert (item.fetched is not None) is screenshots
        assert [screenshot.data for screenshot in await item.screenshots()] == [b"screenshot 0", b"screenshot 1"]
        assert [seen.step for seen in await item.observations()] == [0, 1]
        assert [answer.step for answer in await item.steps()] == [0, 1]

    async def test_the_screenshots_of_a_step_are_those_in_its_prompt(self, backend: Backend, run: Run) -> None:
        await play(backend.bus, task("a"), num_steps=3, in_prompt=lambda step: (0, step))
        items = [item async for item in run.steps(follow=False)]
        assert [screenshot.data for screenshot in await items[2].screenshots()] == [b"screenshot 0", b"screenshot 2"]

    async def test_what_has_aged_out_is_said_so(self, backend: Backend, run: Run) -> None:
        gone = await play(backend.bus, task("a"), num_steps=2, store=False)
        await backend.bus.append(SUBJECTS.trajectories, SUBJECTS.trajectory(Split.TRAIN, gone.episode), gone)
        [item] = [item async for item in run.trajectories(follow=False, screenshots=True)]
        with pytest.raises(RecordGone, match="aged out"):
            await item.screenshots()


class TestDurable:
    async def test_the_next_process_goes_on_behind_the_last_item_that_was_left(self, backend: Backend) -> None:
        await several(backend, "a", "b", "c")
        async with opened(backend.bus) as first:
            async for item in first.trajectories(durable="mine"):
                if _name(item.message) == "b":
                    break  # "a" was left, the body of "b" was not
        async with opened(backend.other) as second:
            assert await names(second.trajectories(durable="mine", follow=False)) == ["b", "c"]
        async with opened(backend.bus) as third:
            assert await names(third.trajectories(durable="mine", follow=False, start=BEGINNING)) == []
            assert await names(third.trajectories(durable="other", follow=False)) == ["a", "b", "c"]

    async def test_a_reader_of_what_is_new_misses_nothing_between_two_processes(self, backend: Backend) -> None:
        await several(backend, "old")
        async with opened(backend.bus) as first, first.trajectories(durable="mine", start=NEW):
            pass
        await several(backend, "between")
        async with opened(backend.bus) as second:
            assert await names(second.trajectories(durable="mine", start=NEW, follow=False)) == ["between"]

    async def test_records_that_were_not_asked_for_are_passed(self, backend: Backend) -> None:
        await several(backend, "a", "b")
        async with opened(backend.bus) as first:
            assert await names(first.trajectories(durable="mine", outcome="blocked", follow=False)) == []
        record = await backend.bus.last(SUBJECTS.positions, SUBJECTS.position("mine"))
        assert record is not None
        assert isinstance(record.message, Position)
        assert record.message.sequences == {SUBJECTS.trajectories: 2}

    async def test_the_older_of_two_processes_with_one_name_ends_with_a_sentence(self, backend: Backend) -> None:
        await several(backend, "a", "b")
        async with opened(backend.bus) as older, opened(backend.other) as newer:
            old = older.trajectories(durable="mine")
            await anext(old)
            new = newer.trajectories(durable="mine")
            assert _name((await anext(new)).message) == "a"
            await anext(old)  # asks for the next: its place is to be written, and is refused
            with pytest.raises(PositionTaken, match="another process has begun to read as 'mine'"), anyio.fail_after(HANGS_S):
                await anext(old)
            assert _name((await anext(new)).message) == "b"

    async def test_an_own_write_whose_answer_was_lost_is_not_another_reader(self, backend: Backend) -> None:
        await several(backend, "a", "b")
        place = DurablePlace(backend.bus, SUBJECTS, "mine")
        await place.claim((SUBJECTS.trajectories,), BEGINNING)
        claim = await backend.bus.last(SUBJECTS.positions, SUBJECTS.position("mine"))
        assert claim is not None
        await backend.bus.append(SUBJECTS.positions, claim.subject, claim.message)
        second = await backend.bus.get(SUBJECTS.trajectories, 2)
        assert second is not None
        place.passed(second)
        await place.write()
        kept = await backend.bus.last(SUBJECTS.positions, SUBJECTS.position("mine"))
        assert kept is not None
        assert isinstance(kept.message, Position)
        assert kept.message.sequences == {SUBJECTS.trajectories: 2}

    @pytest.mark.parametrize("seq", [1, 2, 500])
    async def test_of_a_stream_that_lost_its_end_what_was_stored_since_is_read(self, backend: Backend, seq: int) -> None:
        """Its sequences stand for other records now. That it was stored in the same moment, or later, tells what is new."""
        await several(backend, "a", "b", "c")
        second = await backend.bus.get(SUBJECTS.trajectories, 2)
        assert second is not None
        stored_at = {SUBJECTS.trajectories: second.time_s - 1e-6 if seq != 2 else second.time_s}
        place = Position(name="mine", holder="gone", sequences={SUBJECTS.trajectories: seq}, stored_at=stored_at)
        await backend.bus.append(SUBJECTS.positions, SUBJECTS.position("mine"), place)
        async with opened(backend.bus) as run:
            expected = ["c"] if seq == 2 else ["b", "c"]
            assert await names(run.trajectories(durable="mine", follow=False)) == expected

    async def test_it_starts_where_no_reader_takes_the_record_at_its_place_any_more(self, backend: Backend) -> None:
        """As behind a version that was taken back."""
        [of] = await several(backend, "a")
        newer = SUBJECTS.trajectory(of.split, task("b").episode)
        await backend.bus.append_bytes(SUBJECTS.trajectories, newer, b"\x81\xa4type\xacnewer/thing2")
        stored = await backend.other.get_bytes(SUBJECTS.trajectories, 2)
        assert stored is not None
        stored_at = {SUBJECTS.trajectories: stored.time_s}
        place = Position(name="mine", holder="gone", sequences={SUBJECTS.trajectories: 2}, stored_at=stored_at)
        await backend.bus.append(SUBJECTS.positions, SUBJECTS.position("mine"), place)
        async with opened(backend.bus) as run:
            assert await names(run.trajectories(durable="mine", follow=False)) == []
            await several(backend, "c")
            assert await names(run.trajectories(durable="mine", follow=False)) == ["c"]

    async def test_a_place_behind_the_end_of_which_nothing_is_known_stays_at_the_end(self, backend: Backend) -> None:
        await several(backend, "a")
        before = Position(name="mine", holder="gone", sequences={SUBJECTS.trajectories: 500})
        await backend.bus.append(SUBJECTS.positions, SUBJECTS.position("mine"), before)
        async with opened(backend.bus) as run:
            assert await names(run.trajectories(durable="mine", follow=False)) == []
            await several(backend, "b")
            assert await names(run.trajectories(durable="mine", follow=False)) == ["b"]

    async def test_a_name_that_cannot_be_a_subject_is_refused(self, run: Run) -> None:
        with pytest.raises(ConfigurationError, match="durable name"):
            run.trajectories(durable="my consumer")


@pytest.mark.usefixtures("answers_may_take_their_time")
async def test_a_missing_stream_is_said_where_it_is_read(backend: Backend) -> None:
    async with companion_group() as group:
        nowhere = Run(backend.impatient, type(SUBJECTS)(RUN.__class__("nowhere")), group)
        with pytest.raises(BusUnavailable, match="does not exist"):
            await anext(nowhere.trajectories())
