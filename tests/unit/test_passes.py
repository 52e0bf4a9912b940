"""Where a trainer stands in its passes over stored episodes, by value, and what a pass reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.memory import MemoryBus
from schemas.errors import ConfigurationError
from schemas.feeder_config import FeederConfig
from schemas.messages import Trajectory
from tests.builders import RUBRIC
from tests.support.training.trainer_world import SUBJECTS, judge, play, train_task
from trainer.episodes.episode_steps import EpisodeSteps
from trainer.episodes.intake import ReadingPlace, open_intake, sized
from trainer.episodes.passes import Passes, Position
from trainer.scores import is_success


def test_online_there_is_one_pass_without_an_end() -> None:
    passes = Passes.of(FeederConfig(mode="async"))
    position = passes.after(Position(), seq=128, count=128)
    assert position == Position(seq=128, num_in_pass=128)
    assert passes.remaining(position) is None


def test_the_last_batch_of_a_pass_is_what_is_left() -> None:
    passes = Passes.of(FeederConfig(mode="offline", num_stored=5))
    second = passes.after(passes.after(Position(), seq=3, count=2), seq=7, count=2)
    assert second == Position(seq=7, num_in_pass=4)
    assert passes.remaining(second) == 1
    assert passes.after(second, seq=9, count=1) == Position(num_passes=1)


def test_a_data_set_of_unknown_size_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="num_stored is 0"):
        Passes.of(FeederConfig(mode="offline"))


@given(st.integers(1, 50), st.integers(1, 20), st.integers(1, 40))
def test_every_pass_takes_every_judgement_once(num_stored: int, size: int, num_batches: int) -> None:
    passes, position = Passes(num_stored), Position()
    taken: list[tuple[int, int]] = []
    for _ in range(num_batches):
        remaining = passes.remaining(position)
        assert remaining is not None
        count = min(size, remaining)
        taken.extend((position.num_passes, position.seq + index) for index in range(1, count + 1))
        position = passes.after(position, seq=position.seq + count, count=count)
    assert taken == [(index // num_stored, 1 + index % num_stored) for index in range(len(taken))]


async def _no_steps(_: Trajectory) -> EpisodeSteps:
    return EpisodeSteps()


@pytest.mark.anyio
async def test_a_pass_reads_what_is_stored_whoever_played_it_and_ends() -> None:
    bus = MemoryBus(SUBJECTS)
    for index in range(4):
        await judge(bus, await play(bus, train_task(index, demonstrate=index == 1)))
    async with open_intake(
        bus, SUBJECTS, _no_steps, is_success, rubric=RUBRIC, place=ReadingPlace(0, limit=3), ahead=2
    ) as intake:
        assert [item.seq for item in await intake.batch(sized(2), lambda _: None)] == [1, 2]
        assert [item.seq for item in await intake.batch(sized(2), lambda _: None)] == [3], "the fourth came later"
    async with open_intake(bus, SUBJECTS, _no_steps, is_success, rubric=RUBRIC, place=ReadingPlace(0), ahead=2) as intake:
        assert [item.seq for item in await intake.batch(sized(3), lambda _: None)] == [1, 3, 4], "online no demonstration"
