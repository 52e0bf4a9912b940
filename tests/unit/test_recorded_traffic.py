"""The record of an episode's traffic on its chain, whoever dies, and in archives."""

import gzip
import hashlib
import json
from pathlib import Path

import msgspec
import pytest

from bus import chain
from bus.codec import encode
from bus.evidence import Evidence
from bus.memory import MemoryBus
from ops.archive.episodes import StoredEpisode, StoredRecord
from ops.archive.screenshots import ScreenshotStore, cut, join
from ops.audit.chains import chain_fault
from ops.audit.ledger import link_of, read_ledger
from ops.web.answers import traffic_answer
from ops.web.detail import traffic_of
from ops.web.raw import plain
from schemas.errors import RecordGone
from schemas.ids import WorkerId
from schemas.messages import NetworkRecord, Observation, Outcome, StepRequest, StepWake, Task, Trajectory
from tests import builders
from tests.support.judging.webarena import recorded, visit
from tests.unit.test_browser_worker import REACHED_S, SUBJECTS, ScriptedBrowser, Stage, stage

pytestmark = pytest.mark.anyio
TASK = builders.task()


async def win(on: Stage, num_clicks: int = 1) -> Trajectory:
    await on.admit(TASK)
    for _ in range(num_clicks):
        await on.answer((await on.wake())[1])
    return await on.ended()


async def links(bus: MemoryBus, task: Task = TASK) -> list[type]:
    records = await bus.history(SUBJECTS.episodes(0), SUBJECTS.chain(task.episode))
    assert chain_fault([link_of(record) for record in records]) is None
    return [type(record.message) for record in records]


async def test_the_record_stands_ahead_of_the_end_and_the_trajectory_names_it() -> None:
    async with stage(ScriptedBrowser(clicks_to_win=2), record_network=True) as on:
        trajectory = await win(on, 2)
        assert (await links(on.bus))[-3:] == [StepRequest, NetworkRecord, Trajectory]
        record = await Evidence(on.bus, SUBJECTS).network(trajectory)
        ledger = await read_ledger(on.bus, SUBJECTS)
    assert record is not None
    assert trajectory.network == record.summary
    assert (record.num_observations, record.num_steps) == (2, 2)
    assert hashlib.sha256(record.har).hexdigest() == record.summary.sha256
    urls = [each["request"]["url"] for each in json.loads(gzip.decompress(record.har))["log"]["entries"]]
    assert urls == ["http://site/1", "http://site/2"]
    assert ledger.unsound == []


async def test_without_the_key_nothing_is_recorded_and_no_browser_is_asked_to() -> None:
    async with stage() as on:
        trajectory = await win(on)
        assert NetworkRecord not in await links(on.bus)
        assert on.browser.sessions[0].opening.network is None
        assert await Evidence(on.bus, SUBJECTS).network(trajectory) is None
    assert trajectory.network is None


@pytest.mark.parametrize("has_acted", [True, False])
async def test_an_episode_that_another_worker_began_says_that_its_record_is_of_the_last_attempt(has_acted: bool) -> None:
    async with stage(record_network=True) as on:
        await chain.admit(on.bus, SUBJECTS, TASK)
        dead = await chain.EpisodeChain.take(on.bus, SUBJECTS, TASK, WorkerId("dead"))
        assert isinstance(dead, chain.EpisodeChain)
        seen = await dead.observe(builders.observation(TASK))
        if has_acted:
            await chain.answer(on.bus, SUBJECTS, seen, builders.step_request(TASK))
        await on.bus.append(SUBJECTS.tasks, SUBJECTS.task(TASK.split, TASK.episode), TASK)
        await on.answer((await on.wake())[1])
        trajectory = await on.ended()
    assert trajectory.attempt == 2
    assert trajectory.network is not None
    assert (trajectory.network.num_entries, trajectory.network.num_earlier_attempts) == (1, int(has_acted))


async def test_an_episode_whose_worker_died_behind_its_record_is_ended_with_it() -> None:
    bus = MemoryBus(SUBJECTS)
    await chain.admit(bus, SUBJECTS, TASK)
    owner = await chain.EpisodeChain.take(bus, SUBJECTS, TASK, WorkerId("dead"))
    assert isinstance(owner, chain.EpisodeChain)
    seen = await owner.observe(builders.observation(TASK))
    owner.answered(await chain.answer(bus, SUBJECTS, seen, builders.step_request(TASK)))
    record = msgspec.structs.replace(recorded(TASK, [visit("/")]), num_observations=1, num_steps=1)
    await owner.record(record)
    ended = await chain.cancel(bus, SUBJECTS, TASK, Outcome.CANCELLED, "too late", 1.0)
    assert (ended.num_observations, ended.num_steps, ended.network) == (1, 1, record.summary)
    assert (await links(bus))[-2:] == [NetworkRecord, Trajectory]


async def test_an_answer_that_comes_as_the_episode_is_given_up_stands_before_the_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began = chain.EpisodeChain.record
    waiting: list[StepWake] = []

    async def late(owner: chain.EpisodeChain, network: NetworkRecord) -> None:
        if waiting:
            await on.answer(waiting.pop())
        await began(owner, network)

    monkeypatch.setattr(chain.EpisodeChain, "record", late)
    async with stage(record_network=True) as on:
        await on.admit(msgspec.structs.replace(TASK, timeout_s=REACHED_S))
        waiting.append((await on.wake())[1])
        trajectory = await on.ended()
        assert (await links(on.bus))[-4:] == [Observation, StepRequest, NetworkRecord, Trajectory]
    assert (trajectory.outcome, trajectory.num_observations, trajectory.num_steps) == (Outcome.TIMED_OUT, 1, 1)
    assert trajectory.network is not None


async def test_nobody_answers_an_observation_behind_which_the_record_stands() -> None:
    async with stage(record_network=True) as on:
        await on.admit(msgspec.structs.replace(TASK, timeout_s=REACHED_S))
        _, wake = await on.wake()
        await on.ended()
        assert await chain.open_observation(on.bus, SUBJECTS, wake) is None


async def test_a_record_that_the_bus_does_not_take_is_replaced_by_one_that_says_so() -> None:
    async with stage(ScriptedBrowser(clicks_to_win=60, address_bytes=3_000), record_network=True) as on:
        await on.admit(msgspec.structs.replace(TASK, max_steps=60))
        for _ in range(60):
            await on.answer((await on.wake())[1])
        trajectory = await on.ended()
    assert trajectory.network is not None
    assert trajectory.network.num_entries == 0
    assert trajectory.network.missing[0].startswith("all 60 requests: ")


async def test_a_record_that_aged_out_is_named() -> None:
    record = recorded(TASK, [visit("/")])
    of = msgspec.structs.replace(builders.trajectory(TASK), network=record.summary)
    with pytest.raises(RecordGone, match="has aged out"):
        await Evidence(MemoryBus(SUBJECTS), SUBJECTS).network(of)


def test_archives_keep_it_as_a_file_of_its_own_named_by_its_content(tmp_path: Path) -> None:
    record = recorded(TASK, [visit("/")])
    stored = StoredRecord("1.net.0", 1.0, encode(record))
    rest, traffic = cut(stored)
    assert traffic is not None
    store = ScreenshotStore(tmp_path)
    name = store.put(traffic)
    assert name == rest.screenshot == f"{record.summary.sha256}.har.gz"
    assert gzip.decompress(store.read(name)).startswith(b'{"log":{"version":"1.2"')
    assert join(rest, store.read(name)) == stored
    assert len(rest.data) < len(stored.data)


def test_raw_records_name_it_in_place_of_its_bytes() -> None:
    record = recorded(TASK, [visit("/")])
    assert plain(record)["har"] == f"{len(record.har)} bytes, sha256 {record.summary.sha256}"


def test_the_viewer_gives_it_as_a_file_that_developer_tools_open() -> None:
    record = recorded(TASK, [visit("/")])
    ended = msgspec.structs.replace(builders.trajectory(TASK), network=record.summary)
    stored = (StoredRecord("1.net.0", 1.0, encode(record)), StoredRecord("done", 2.0, encode(ended)))
    episode = StoredEpisode(TASK.episode, ended, encode(ended), 2.0, stored)
    assert traffic_of(episode) == record
    answer = traffic_answer(record)
    assert (answer.body, answer.headers["content-encoding"]) == (record.har, "gzip")
    assert f'filename="{TASK.episode}.har"' in answer.headers["content-disposition"]
    assert traffic_of(StoredEpisode(TASK.episode, ended, encode(ended), 2.0, stored[1:])) is None
