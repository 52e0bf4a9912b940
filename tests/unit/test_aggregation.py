"""How token losses become one: every mode against its definition, whatever the split."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.objective_config import Aggregation
from tests.support.training import oracles, ragged
from trainer.objective.aggregation import token_weights

MODES: tuple[Aggregation, ...] = get_args(Aggregation)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(MODES), st.sampled_from([1.0, 7.5, 1024.0]))
def test_every_mode_equals_its_definition(seed: int, mode: Aggregation, scale_factor: float) -> None:
    sequences = ragged.sequences(seed)
    weights = token_weights([s.mask for s in sequences], mode, scale_factor=scale_factor)
    found = sum(float((share * s.returns).sum()) for share, s in zip(weights, sequences, strict=True))
    trained = [s.returns[s.mask > 0].tolist() for s in sequences]
    assert found == pytest.approx(oracles.aggregated(trained, mode, scale_factor), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("token-mean", [1 / 4, 1 / 4]),
        ("seq-mean-token-sum", [1 / 2, 1 / 2]),
        ("seq-mean-token-mean", [1 / 6, 1 / 2]),
        ("seq-mean-token-sum-norm", [1 / 20, 1 / 20]),
    ],
)
def test_weights_by_hand(mode: Aggregation, expected: list[float]) -> None:
    """Three trained tokens and one; a sequence without any does not count."""
    masks = [np.array([1, 1, 0, 1]), np.array([1]), np.array([0, 0])]
    long, short, none = token_weights(masks, mode, scale_factor=10.0)
    assert long.tolist() == pytest.approx([expected[0], expected[0], 0.0, expected[0]])
    assert short.tolist() == pytest.approx([expected[1]])
    assert none.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("mode", MODES)
def test_nothing_to_train_on_weighs_nothing(mode: Aggregation) -> None:
    assert [share.tolist() for share in token_weights([np.zeros(2), np.zeros(1)], mode)] == [[0.0, 0.0], [0.0]]
