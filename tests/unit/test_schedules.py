"""Schedules on paper, by hand: one number an episode is its seconds."""

import pytest

from ops.planning.schedules import Episode, Training, list_schedule, published


def episodes(*seconds: float) -> list[Episode]:
    return [[(each / 2, each / 2)] for each in seconds]


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        (0, [3.0, 8.0]),  # 2 played, 1 trained, 1 paused, 3 played, 1 trained
        (1, [3.0, 7.0]),  # the second begins at 2, stands still from 3 to 4, ends at 6
    ],
)
def test_versions_of_one_slot(ahead: int, expected: list[float]) -> None:
    training = Training(batch=1, train_s=1.0, pause_s=1.0, ahead=ahead)
    assert published(episodes(2, 3), 1, training) == expected


def test_a_synchronous_iteration_gives_stragglers_up_and_goes_on_without_them() -> None:
    training = Training(batch=4, train_s=1.0, pause_s=0.0, ahead=0, enough=0.75, grace_s=2.0)
    assert published(episodes(1, 1, 1, 9, 1, 1, 1, 2), 4, training) == [4.0, 7.0]
    patient = Training(batch=4, train_s=1.0, pause_s=0.0, ahead=0)
    assert published(episodes(1, 1, 1, 9, 1, 1, 1, 2), 4, patient) == [10.0, 13.0]


def test_without_training_and_bound_it_is_list_scheduling() -> None:
    played = episodes(5, 1, 4, 2, 3, 6)
    training = Training(batch=6, train_s=0.0, pause_s=0.0, ahead=0)
    assert published(played, 2, training) == [list_schedule(played, 2)]
