"""The replay buffer: what it keeps, how it draws, that it is deterministic."""

import msgspec
import numpy as np
import pytest

from schemas.messages import RecordRef
from tests.support.training.trainer_world import ref, small
from trainer.episodes.replay import Replay, ReplayEntry
from trainer.training_order import training_order

CONFIG = small(positive_samples_to_train=4, replay_iterations=2, recency_bias_power=2.0)


def plain(steps: list[RecordRef]) -> list[tuple[RecordRef, str]]:
    return [(step, "") for step in steps]


def filled() -> Replay:
    replay = Replay(CONFIG)
    replay.add(0, plain([ref(step) for step in range(3)]))
    replay.add(1, plain([ref(step) for step in range(10, 15)]))
    return replay


def test_keeps_the_last_iterations() -> None:
    replay = filled()
    replay.add(2, plain([ref(20)]))
    assert [(entry.iteration, entry.step.step) for entry in replay.entries] == [
        *((1, step) for step in range(10, 15)),
        (2, 20),
    ]
    replay.add(3, plain([]))
    assert [entry.step.step for entry in replay.entries] == [20], "an iteration without success makes others age"


def test_everything_is_drawn_when_there_is_little() -> None:
    replay = Replay(CONFIG)
    replay.add(0, plain([ref(1), ref(2)]))
    assert replay.draw(0, 0) == [ref(1), ref(2)]
    assert Replay(CONFIG).draw(0, 0) == []


def test_draws_without_replacement_and_the_same_for_the_same_seed() -> None:
    replay = filled()
    drawn = replay.draw(7, 1)
    assert len(set(drawn)) == 4
    assert drawn == filled().draw(7, 1)
    assert any(replay.draw(seed, 1) != drawn for seed in range(5))
    assert any(replay.draw(7, iteration) != drawn for iteration in range(2, 7))


def test_newer_steps_are_likelier_by_the_configured_power() -> None:
    """One of two is drawn: with weights 1 and (2 + 1)^2 = 9, the newer one nine times in ten."""
    replay = Replay(small(positive_samples_to_train=1, replay_iterations=9, recency_bias_power=2.0))
    replay.add(0, plain([ref(0)]))
    replay.add(2, plain([ref(2)]))
    newer = np.mean([replay.draw(seed, 2) == [ref(2)] for seed in range(2000)])
    assert abs(newer - 0.9) < 0.02


@pytest.mark.parametrize(("balance", "share"), [(0.0, 0.1), (0.5, 0.25), (1.0, 0.5)])
def test_steps_of_subdomains_that_are_seldom_solved_are_likelier_by_the_balance(balance: float, share: float) -> None:
    """One of 90 is drawn, 9 of them of the rare kind: weights 81 ** -b and 9 ** -b."""
    replay = Replay(small(positive_samples_to_train=1, replay_iterations=9, replay_balance=balance))
    replay.add(0, [(ref(step), "often" if step < 81 else "seldom") for step in range(90)])
    seldom = np.mean([replay.draw(seed, 0)[0].step >= 81 for seed in range(2000)])
    assert abs(seldom - share) < 0.03


def test_survives_a_checkpoint() -> None:
    replay = filled()
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(replay.entries), type=tuple[ReplayEntry, ...])
    assert Replay(CONFIG, stored).draw(7, 1) == replay.draw(7, 1)


def test_an_epoch_is_every_index_once_in_even_steps() -> None:
    steps = training_order(10, 4, seed=0, iteration=1, epoch=0)
    assert [len(step) for step in steps] == [4, 3, 3]
    assert sorted(np.concatenate(steps).tolist()) == list(range(10))
    again = training_order(10, 4, seed=0, iteration=1, epoch=1)
    assert np.concatenate(steps).tolist() != np.concatenate(again).tolist()
    assert training_order(0, 4, seed=0, iteration=0, epoch=0) == []


def test_beyond_its_capacity_the_oldest_go_first() -> None:
    replay = Replay(small(replay_iterations=3, replay_capacity=4))
    replay.add(0, plain([ref(step) for step in range(3)]))
    replay.add(1, plain([ref(10), ref(11)]))
    assert [entry.step.step for entry in replay.entries] == [1, 2, 10, 11]
    replay.add(2, plain([ref(step) for step in range(20, 26)]))
    assert [entry.step.step for entry in replay.entries] == [22, 23, 24, 25]


def test_what_is_held_out_of_a_stored_data_set_stays_where_it_is() -> None:
    """So that every version of every pass is measured on the same steps, once they all came."""
    replay = Replay(small(replay_iterations=1, replay_capacity=2), lasting=True)
    for version, steps in enumerate([(0, 1), (2, 3), (0, 1), (2, 3)]):
        replay.add(version, plain([ref(step) for step in steps]))
        if version:
            assert [entry.step for entry in replay.entries] == [ref(step) for step in range(4)]
