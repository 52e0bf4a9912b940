"""The mismatch gate, by value: rounding passes, other weights or tokens do not, and no token decides alone."""

import math

import numpy as np
import pytest

from schemas.errors import MismatchExceeded
from schemas.ids import PolicyVersion
from schemas.trainer_config import TrainerConfig
from tests.support.training.trainer_world import ref
from trainer.mismatch import Mismatch, check_mismatch, comparable, measured_mismatch
from trainer.samples import Sample

_TRAINER = TrainerConfig()


def sample(logprobs: list[float], versions: list[int]) -> Sample:
    return Sample(
        ref=ref(1),
        tokens=np.arange(3 + len(versions), dtype=np.int32),
        num_prompt=3,
        positions=np.zeros((3, 3 + len(versions)), dtype=np.int32),
        logprobs=np.array(logprobs, dtype=np.float32),
        temperature=1.0,
        screenshots=(),
        versions=np.array(versions, dtype=np.int32),
    )


def measured(differences: list[float]) -> Mismatch:
    """Of the trainer's log-probabilities from the sampler's."""
    return measured_mismatch(
        [sample([-1.0] * len(differences), [0] * len(differences))], [np.array(differences, dtype=np.float32) - 1.0]
    )


def closes(mismatch: Mismatch) -> bool:
    try:
        check_mismatch(mismatch, trainer=_TRAINER, version=PolicyVersion(1), num_samples=3)
    except MismatchExceeded:
        return True
    return False


def test_only_samples_of_exactly_this_version_are_compared() -> None:
    assert comparable(sample([-1.0, -2.0], [3, 3]), PolicyVersion(3))
    assert not comparable(sample([-1.0, -2.0], [2, 3]), PolicyVersion(3))
    assert not comparable(sample([], [3, 3]), PolicyVersion(3))


def test_the_figures_are_means_over_tokens_without_the_furthest() -> None:
    found = measured([0.5, -0.1, 0.0, math.log(4)])
    assert found.mean == pytest.approx((0.5 + 0.1 + math.log(4)) / 4)
    assert found.k3 == pytest.approx((math.exp(0.5) - 1.5 + math.exp(-0.1) - 0.9) / 4, rel=1e-4)
    assert found.far_share == 0
    assert measured([math.log(4), -math.log(4)]).far_share == 0.5


def test_rounding_hardly_counts_in_k3() -> None:
    found = measured([0.01, -0.01] * 50)
    assert found.mean == pytest.approx(0.01, rel=1e-3)
    assert found.k3 == pytest.approx(0.01**2 / 2, rel=0.02)


@pytest.mark.parametrize("outlier", [-30.0, 3.0, 19.0, 80.0])
def test_one_token_stops_no_run_however_few_there_are(outlier: float) -> None:
    assert not closes(measured([outlier]))
    assert not closes(measured([0.01, -0.02, outlier]))


@pytest.mark.parametrize("outlier", [-30.0, 19.0, 800.0])
def test_a_few_of_many_stop_none(outlier: float) -> None:
    assert not closes(measured([0.02, -0.02] * 500 + [outlier] * 4))


@pytest.mark.parametrize("difference", [-0.4, 0.4, -3.0, 3.0])
@pytest.mark.parametrize("share", [1.0, 0.25])
def test_a_disagreement_of_many_tokens_does(difference: float, share: float) -> None:
    off = round(400 * share)
    assert closes(measured([difference] * off + [0.01] * (400 - off)))


@pytest.mark.parametrize("nothing", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_always_does(nothing: float) -> None:
    assert closes(measured([nothing] + [0.0] * 400))


@pytest.mark.parametrize(
    ("mismatch", "why"),
    [
        (Mismatch(mean=0.1, k3=0.011, far_share=0.0), "k3 is 0.0110 nats (trainer_config.max_mismatch_k3: 0.01)"),
        (Mismatch(mean=0.1, k3=0.0, far_share=0.06), "of 6.0% of the tokens differ by more than a factor of 2"),
    ],
)
def test_the_gate_explains(mismatch: Mismatch, why: str) -> None:
    assert not closes(Mismatch(mean=9.0, k3=0.01, far_share=0.02))
    with pytest.raises(MismatchExceeded, match="Likely causes") as raised:
        check_mismatch(mismatch, trainer=_TRAINER, version=PolicyVersion(1), num_samples=3)
    assert why in str(raised.value)
