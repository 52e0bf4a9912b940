"""Loss scaling of fp16: a step whose gradients overflow is made again with half the scale, so that no batch is lost.

Source: Micikevicius et al. 2018 (arXiv 1710.03740), section 3.2. DeepSpeed's own scaler leaves such a step out, and begins so
high that several are.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import structlog

T = TypeVar("T")
_log = structlog.get_logger()
_STATE = ("cur_scale", "cur_iter", "last_overflow_iter", "cur_hysteresis")


class LossScale:
    """Of one DeepSpeed optimizer; in other precisions, and where the file names a fixed scale, there is nothing to do.

    Every overflow lowers the scale, whatever hysteresis the file names: a step that is made again shall differ.
    """

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._scaler = optimizer.loss_scaler
        self._is_dynamic = bool(self._scaler.dynamic)
        if self._is_dynamic:
            self._scaler.raise_error_at_min_scale = False
            self._scaler.delayed_shift = 1

    @property
    def state(self) -> tuple[float, ...]:
        """What the next step's scale depends on; empty: it has none."""
        return tuple(float(getattr(self._scaler, name)) for name in _STATE) if self._is_dynamic else ()

    def restore(self, state: tuple[float, ...]) -> None:
        if self._is_dynamic and state:
            scale, *counts = state
            for name, value in zip(_STATE, (scale, *map(int, counts)), strict=True):
                setattr(self._scaler, name, value)

    def step(self, attempt: Callable[[], T]) -> T:
        """What an attempt says whose gradients were finite; weights were changed by that one alone.

        Where they are finite at no scale the step is left out, as in every precision, and the scale stays as it was.
        """
        before = self.state
        while True:
            scale = self._scaler.loss_scale
            found = attempt()
            if not self._is_dynamic or not self._optimizer.overflow:
                return found
            if self._scaler.loss_scale >= scale:
                self.restore(before)
                _log.error("step_left_out", reason="gradients are finite at no loss scale", smallest=scale)
                return found
            _log.info("step_made_again", reason="gradients overflowed", loss_scale=self._scaler.loss_scale)
