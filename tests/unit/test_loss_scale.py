"""Loss scaling: what overflows is made again, and what is finite at no scale is left out."""

from types import SimpleNamespace
from typing import Any

import pytest
from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler, LossScaler

from trainer.engine.loss_scale import LossScale


def optimizer(*, scale: float = 2.0**6, static: bool = False, hysteresis: int = 1) -> Any:
    dynamic = DynamicLossScaler(scale, scale_window=1000, min_scale=1, delayed_shift=hysteresis, consecutive_hysteresis=False)
    return SimpleNamespace(loss_scaler=LossScaler(scale) if static else dynamic, overflow=False)


class Steps:
    """Attempts whose gradients are finite up to a scale."""

    def __init__(self, of: Any, finite_up_to: float) -> None:
        self._of, self._finite_up_to = of, finite_up_to
        self.scales: list[float] = []

    def __call__(self) -> float:
        scale = float(self._of.loss_scaler.loss_scale)
        self.scales.append(scale)
        self._of.overflow = scale > self._finite_up_to
        self._of.loss_scaler.update_scale(self._of.overflow)
        return scale


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepspeed.comm.get_rank", lambda: 1)
    monkeypatch.setattr("deepspeed.runtime.fp16.loss_scaler.log_dist", lambda *_, **__: None)


def test_what_overflows_is_made_again_with_half_the_scale() -> None:
    made = optimizer()
    scale, steps = LossScale(made), Steps(made, finite_up_to=20.0)
    assert scale.step(steps) == 16.0
    assert steps.scales == [64.0, 32.0, 16.0]
    assert scale.step(steps) == 16.0, "the next begins where this one ended"


def test_every_overflow_lowers_the_scale_whatever_hysteresis_a_file_or_a_checkpoint_names() -> None:
    made = optimizer(hysteresis=2)
    scale, steps = LossScale(made), Steps(made, finite_up_to=20.0)
    scale.restore((64.0, 3.0, 1.0, 2.0))
    assert scale.step(steps) == 16.0
    assert steps.scales == [64.0, 32.0, 16.0]


def test_what_is_finite_at_no_scale_is_left_out_and_leaves_the_scale() -> None:
    made = optimizer()
    scale, steps = LossScale(made), Steps(made, finite_up_to=0.0)
    before = scale.state
    scale.step(steps)
    assert steps.scales == [64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0]
    assert scale.state == before


def test_a_scale_goes_on_where_it_was() -> None:
    first, second = optimizer(), optimizer(scale=2.0**16)
    scale, steps = LossScale(first), Steps(first, finite_up_to=20.0)
    scale.step(steps)
    again = LossScale(second)
    again.restore(scale.state)
    assert again.state == scale.state == (16.0, 3.0, 1.0, 1.0)


def test_a_fixed_scale_has_one_attempt() -> None:
    made = optimizer(static=True)
    scale, steps = LossScale(made), Steps(made, finite_up_to=0.0)
    assert (scale.step(steps), scale.state) == (64.0, ())
    scale.restore(())
    assert steps.scales == [64.0]
