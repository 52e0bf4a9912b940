"""A server that lost power gives the sequences of judgements it has lost to others: on the in-memory bus."""

from pathlib import Path

import anyio
import pytest
from structlog.testing import capture_logs

from bus.memory import MemoryBus
from schemas.errors import TrainerError
from schemas.messages import Outcome, Trajectory
from tests.builders import RUBRIC
from tests.deadlines import HANGS_S
from tests.support.training.trainer_world import SUBJECTS, judge, train_task
from trainer.episodes.episode_steps import EpisodeSteps
from trainer.episodes.intake import ReadingPlace, open_intake, sized
from trainer.episodes.passes import Consumed
from trainer.scores import is_success
from trainer.versions.checkpoints import require_no_versions

pytestmark = pytest.mark.anyio


def ended(index: int) -> Trajectory:
    return Trajectory(task=train_task(index), attempt=1, outcome=Outcome.DONE)


def lose_end(bus: MemoryBus, *, behind: int) -> None:
    stream = bus._streams[SUBJECTS.judged]
    stream.records = {seq: record for seq, record in stream.records.items() if seq <= behind}
    stream.last_seq = behind


async def _no_steps(_: Trajectory) -> EpisodeSteps:
    return EpisodeSteps()


@pytest.mark.parametrize(
    ("behind", "judged_again", "expected"),
    [
        (8, [], [20]),
        (6, [], [20]),
        (6, [6, 7], [20]),
        (6, [7, 6, 9], [9, 20]),
        (3, [5, 4, 11, 3, 12, 6, 7], [11, 12, 20]),
        (0, [0, 1, 2], [20]),
    ],
)
async def test_what_was_consumed_is_never_consumed_again_nor_anything_left_out(
    behind: int, judged_again: list[int], expected: list[int]
) -> None:
    bus = MemoryBus(SUBJECTS)
    for index in range(8):
        await judge(bus, ended(index))
    consumed = tuple(Consumed(index + 1, ended(index).episode) for index in range(8))
    lose_end(bus, behind=behind)
    for index in (*judged_again, 20):
        await judge(bus, ended(index))
    with capture_logs() as entries, anyio.fail_after(HANGS_S):
        async with open_intake(
            bus, SUBJECTS, _no_steps, is_success, rubric=RUBRIC, place=ReadingPlace(8, consumed), ahead=4
        ) as intake:
            batch = await intake.batch(sized(len(expected)), lambda _: None)
    assert [item.judgement.trajectory.task.index for item in batch] == expected
    is_as_it_was = behind == 8 or judged_again == [6, 7]
    assert ("stream_lost_its_end" in [entry["event"] for entry in entries]) is not is_as_it_was


async def test_where_nothing_is_known_of_what_was_consumed_it_goes_on_at_the_end() -> None:
    bus = MemoryBus(SUBJECTS)
    for index in range(3):
        await judge(bus, ended(index))
    with anyio.fail_after(HANGS_S):
        async with open_intake(bus, SUBJECTS, _no_steps, is_success, rubric=RUBRIC, place=ReadingPlace(8), ahead=4) as intake:
            await judge(bus, ended(9))
            batch = await intake.batch(sized(1), lambda _: None)
    assert [item.judgement.trajectory.task.index for item in batch] == [9]


def test_a_trainer_whose_announcements_are_lost_begins_nothing_anew(tmp_path: Path) -> None:
    require_no_versions(tmp_path, "r")
    for version in (3, 12):
        (tmp_path / f"v{version:06d}-0a1b2c3d").mkdir()
    with pytest.raises(TrainerError, match="holds versions up to 12 and CHECKPOINTS of run r announces none"):
        require_no_versions(tmp_path, "r")
