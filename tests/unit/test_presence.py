"""What a worker says of itself can always be written."""

import math

import pytest

from bus.codec import decode, encode
from bus.presence import Status
from schemas.ids import WorkerId
from schemas.messages import Heartbeat, Role


@pytest.mark.parametrize("diverged", [math.nan, math.inf, -math.inf, 1e39, -1e39])
def test_a_figure_that_no_message_can_hold_is_left_out(diverged: float) -> None:
    status = Status(Role.TRAINER, WorkerId("trainer-1"), metrics={"grad_norm": diverged, "loss": 0.5})
    said = decode(encode(status.heartbeat(1.0)))
    assert isinstance(said, Heartbeat)
    assert said.metrics == {"loss": 0.5}
