"""The learning rate of every optimizer step, by value."""

import pytest

from schemas.algorithm_config import AlgorithmConfig
from trainer.engine.schedule import scheduled


@pytest.mark.parametrize(
    ("kind", "rates"),
    [
        ("constant", [1.0, 1.0, 1.0, 1.0, 1.0]),
        ("constant_with_warmup", [0.25, 1.0, 1.0, 1.0, 1.0]),
        ("linear", [0.25, 1.0, 0.6, 0.2, 0.2]),
        ("cosine", [0.25, 1.0, 0.6, 0.2, 0.2]),
    ],
)
def test_a_rate_rises_stays_or_falls(kind: str, rates: list[float]) -> None:
    """Four updates of warm-up, then half of the way down at update 12, all of it at 20."""
    falls = {"lr_scheduler_steps": 20, "min_lr_ratio": 0.2} if kind in ("linear", "cosine") else {}
    algorithm = AlgorithmConfig(lr_scheduler_type=kind, warmup_steps=4, **falls)  # type: ignore[arg-type]
    found = [scheduled(1.0, num_updates=count, algorithm=algorithm) for count in (0, 4, 12, 20, 99)]
    assert found == pytest.approx(rates)


def test_a_cosine_falls_slowly_first() -> None:
    linear = AlgorithmConfig(lr_scheduler_type="linear", warmup_steps=0, lr_scheduler_steps=100)
    cosine = AlgorithmConfig(lr_scheduler_type="cosine", warmup_steps=0, lr_scheduler_steps=100)
    assert scheduled(1.0, num_updates=25, algorithm=linear) == pytest.approx(0.75)
    assert scheduled(1.0, num_updates=25, algorithm=cosine) == pytest.approx(0.853553)
