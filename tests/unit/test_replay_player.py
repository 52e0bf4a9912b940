"""What a replay selects, how it is paced, and what it writes; from one in-memory run into another."""

import msgspec
import pytest

from bus import chain
from bus.memory import MemoryBus
from bus.subjects import Subjects
from ops.archive.importer import Importer
from ops.archive.stream_source import StreamSource
from ops.replay.config import num_iterations, with_dataset
from ops.replay.player import Pace, Played, play
from ops.replay.request import Selection
from schemas.config import Config
from schemas.errors import ConfigurationError, ImportConflict
from schemas.feeder_config import FeederConfig
from schemas.ids import RunName
from schemas.messages import Judgement, Observation, RecordRef, Split
from tests.builders import RUBRIC
from tests.support.training.trainer_world import SUBJECTS, judge, train_task
from tests.support.training.trainer_world import play as play_episode

pytestmark = pytest.mark.anyio
TARGET = Subjects(RunName("copy"), num_shards=3)
REWARDS = (1.0, 0.0, 1.0, None, 1.0)


async def stored() -> MemoryBus:
    bus = MemoryBus(SUBJECTS)
    for index, reward in enumerate(REWARDS):
        await judge(bus, await play_episode(bus, train_task(index), num_steps=2), reward)
    return bus


async def replayed(source: MemoryBus, target: MemoryBus, selection: Selection, *, judgements: bool = True) -> Played:
    importer = Importer(bus=target, subjects=TARGET)
    return await play(StreamSource(source, SUBJECTS), importer, selection, pace=Pace(None), judgements=judgements)


async def judged(bus: MemoryBus) -> list[int]:
    records = await bus.history(TARGET.judged, TARGET.judgements(None))
    return [record.message.trajectory.task.index for record in records if isinstance(record.message, Judgement)]


async def test_chains_trajectories_and_judgements_come_over_and_again_changes_nothing() -> None:
    source, target = await stored(), MemoryBus(TARGET)
    first = await replayed(source, target, Selection())
    assert (first.num_read, first.num_replayed, first.num_known) == (5, 5, 0)
    again = await replayed(source, target, Selection())
    assert (again.num_replayed, again.num_known) == (5, 5)
    assert await judged(target) == [0, 1, 2, 3, 4]
    assert await target.last_seq(TARGET.trajectories) == await target.last_seq(TARGET.judged) == 5
    episode = train_task(3).episode
    seen = await chain.read(target, TARGET, RecordRef(episode=episode, attempt=1, kind="obs", step=1))
    assert seen is not None, "what a trajectory refers to is found in the other run"
    assert isinstance(seen.message, Observation)


async def test_a_replay_that_was_stopped_goes_on() -> None:
    source, target = await stored(), MemoryBus(TARGET)
    await replayed(source, target, Selection(limit=2), judgements=False)
    await replayed(source, target, Selection())
    assert await judged(target) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(min_reward=0.5), [0, 2, 4]),
        (Selection(min_reward=0.0), [0, 1, 2, 4]),
        (Selection(min_reward=0.5, limit=2), [0, 2]),
        (Selection(split=Split.EVAL), []),
        (Selection(split=Split.TRAIN, limit=1), [0]),
    ],
)
async def test_only_what_is_selected_is_replayed(selection: Selection, expected: list[int]) -> None:
    target = MemoryBus(TARGET)
    played = await replayed(await stored(), target, selection)
    assert await judged(target) == expected
    assert played.num_replayed == len(expected)


async def twice_judged() -> MemoryBus:
    """Every episode has a judgement of another rubric too, which says the opposite."""
    bus = await stored()
    for record in await bus.history(SUBJECTS.judged, SUBJECTS.judgements(None)):
        given = record.message
        assert isinstance(given, Judgement)
        if given.reward is not None:
            other = msgspec.structs.replace(given, rubric="strict", reward=1.0 - given.reward)
            await bus.append(SUBJECTS.judged, SUBJECTS.judgement(given.split, "strict", given.episode), other)
    return bus


async def test_one_rubric_is_taken_and_by_it_the_reward_is_chosen() -> None:
    target = MemoryBus(TARGET)
    played = await replayed(await twice_judged(), target, Selection(rubric="strict", min_reward=0.5))
    records = await target.history(TARGET.judged, TARGET.judgements(None))
    assert [(record.message.rubric, record.message.trajectory.task.index) for record in records] == [("strict", 1)]  # type: ignore[union-attr]
    assert (played.num_replayed, played.num_judgements) == (1, 1)


async def test_where_several_rubrics_judged_training_is_told_which() -> None:
    rubrics = await StreamSource(await twice_judged(), SUBJECTS).rubrics()
    assert rubrics == {RUBRIC, "strict"}
    for selection, one in ((Selection(), True), (Selection(min_reward=0.5), False)):
        with pytest.raises(ConfigurationError, match="environment_v1, strict: choose one with --rubric"):
            selection.check(rubrics, one=one)
    with pytest.raises(ConfigurationError, match="nothing is judged by severe"):
        Selection(rubric="severe").check(rubrics, one=True)
    Selection().check(rubrics, one=False)
    Selection(rubric="strict", min_reward=0.5).check(rubrics, one=True)
    Selection().check({RUBRIC}, one=True)


async def test_without_judgements_the_judges_of_the_run_find_the_trajectories() -> None:
    target = MemoryBus(TARGET)
    await replayed(await stored(), target, Selection(), judgements=False)
    assert await judged(target) == []
    assert len(await target.subjects(TARGET.trajectories, TARGET.everything("trajectory"))) == 5


async def test_other_content_under_a_known_name_is_an_error() -> None:
    source, target = await stored(), MemoryBus(TARGET)
    other = MemoryBus(SUBJECTS)
    await judge(other, await play_episode(other, train_task(0), num_steps=1), 1.0)
    await replayed(source, target, Selection())
    with pytest.raises(ImportConflict):
        await replayed(other, target, Selection())


def test_the_pace_keeps_the_spacing_of_the_ends() -> None:
    now = 100.0

    def clock() -> float:
        return now

    pace = Pace(10.0, clock=clock)
    assert pace.wait_s(5000.0) == 0.0
    assert pace.wait_s(5020.0) == pytest.approx(2.0)
    now = 101.5
    assert pace.wait_s(5020.0) == pytest.approx(0.5)
    assert pace.wait_s(5001.0) == 0.0, "late already"
    assert Pace(None, clock=clock).wait_s(9999.0) == 0.0


@pytest.mark.parametrize(("stored", "batch", "passes", "expected"), [(1024, 128, 1, 8), (1025, 128, 2, 18), (3, 128, 4, 4)])
def test_a_pass_ends_with_a_shorter_batch(stored: int, batch: int, passes: int, expected: int) -> None:
    assert num_iterations(stored, batch, passes) == expected


def test_a_data_set_never_changes_once_training_has_begun() -> None:
    config = with_dataset(Config(), 40, 3, num_selected=40)
    assert (config.feeder_config.num_stored, config.feeder_config.num_iterations) == (40, 3)
    assert with_dataset(config, 40, 9, num_selected=40).feeder_config.num_iterations == 9
    with pytest.raises(ConfigurationError, match="begun with a data set of 40"):
        with_dataset(config, 41, 3, num_selected=41)
    with pytest.raises(ConfigurationError, match="nothing to train on"):
        with_dataset(Config(feeder_config=FeederConfig(mode="offline")), 0, 3, num_selected=0)
    with pytest.raises(ConfigurationError, match="holds 40 training episodes from before and 30 are selected"):
        with_dataset(Config(), 40, 3, num_selected=30)


@pytest.mark.parametrize(
    ("num_episodes", "limit", "share"),
    [(40, None, (10, 40)), (None, None, (10, None)), (None, 8, (4, 8)), (40, 8, (4, 8)), (40, 30, (10, 40))],
)
def test_progress_is_that_of_the_nearer_end(
    num_episodes: int | None, limit: int | None, share: tuple[int, int | None]
) -> None:
    assert Played(num_read=10, num_replayed=4).share(num_episodes, limit) == share
