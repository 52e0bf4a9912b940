"""How token losses become one: every mode against its definition, whatever the split."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.ids import EpisodeId
from schemas.objective_config import Aggregation
from tests.support.training import loss_oracles, ragged
from trainer.objective.aggregation import IterationCounts, token_weights

MODES: tuple[Aggregation, ...] = get_args(Aggregation)


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.sampled_from(MODES), st.sampled_from([1.0, 7.5, 1024.0]))
def test_every_mode_equals_its_definition(seed: int, mode: Aggregation, scale_factor: float) -> None:
    sequences = ragged.sequences(seed)
    episodes = [EpisodeId(s.episode) for s in sequences]
    weights = token_weights([s.mask for s in sequences], mode, scale_factor=scale_factor, episodes=episodes)
    found = sum(float((share * s.returns).sum()) for share, s in zip(weights, sequences, strict=True))
    trained = [s.returns[s.mask > 0].tolist() for s in sequences]
    assert found == pytest.approx(loss_oracles.aggregated(trained, mode, scale_factor, episodes), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("token-mean", [1 / 4, 1 / 4]),
        ("seq-mean-token-sum", [1 / 2, 1 / 2]),
        ("seq-mean-token-mean", [1 / 6, 1 / 2]),
        ("seq-mean-token-sum-norm", [1 / 20, 1 / 20]),
        ("traj-mean-token-sum", [1.0, 1.0]),
        ("traj-mean-token-mean", [1 / 4, 1 / 4]),
        ("traj-mean-token-sum-norm", [1 / 10, 1 / 10]),
        ("traj-mean-seq-sum", [1 / 3, 1.0]),
    ],
)
def test_weights_by_hand(mode: Aggregation, expected: list[float]) -> None:
    """Three trained tokens and one, of one episode; a sequence without any, of another one, does not count."""
    masks = [np.array([1, 1, 0, 1]), np.array([1]), np.array([0, 0])]
    episodes = [EpisodeId("a"), EpisodeId("a"), EpisodeId("b")]
    long, short, none = token_weights(masks, mode, scale_factor=10.0, episodes=episodes)
    assert long.tolist() == pytest.approx([expected[0], expected[0], 0.0, expected[0]])
    assert short.tolist() == pytest.approx([expected[1]])
    assert none.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("mode", MODES)
def test_nothing_to_train_on_weighs_nothing(mode: Aggregation) -> None:
    masks = [np.zeros(2), np.zeros(1)]
    assert [share.tolist() for share in token_weights(masks, mode, episodes=[EpisodeId("a")] * 2)] == [[0.0, 0.0], [0.0]]


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([mode for mode in MODES if mode.startswith("traj")]), st.integers(1, 4))
def test_the_steps_of_an_iteration_are_its_trajectories_in_the_mean(seed: int, mode: Aggregation, size: int) -> None:
    """Wherever the sequences of an episode come to stand: the mean of the steps, by their sequences, is the iteration's."""
    sequences = [s for s in ragged.sequences(seed, num=7) if s.mask.any()]
    names = [EpisodeId(s.episode) for s in sequences]
    counts = IterationCounts.of((name, int(s.mask.sum())) for name, s in zip(names, sequences, strict=True))
    order = np.random.default_rng(seed).permutation(len(sequences))
    total = 0.0
    for chosen in (order[first : first + size] for first in range(0, len(order), size)):
        masks = [sequences[index].mask for index in chosen]
        weights = token_weights(masks, mode, scale_factor=7.5, episodes=[names[index] for index in chosen], iteration=counts)
        loss = sum(float((w * sequences[i].returns).sum()) for w, i in zip(weights, chosen, strict=True))
        total += loss * len(chosen) / len(sequences)
    trained = [s.returns[s.mask > 0].tolist() for s in sequences]
    assert total == pytest.approx(loss_oracles.aggregated(trained, mode, 7.5, names), rel=1e-6, abs=1e-9)
