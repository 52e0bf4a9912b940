"""Fixtures of all drills."""

from collections.abc import Iterator

import pytest

from tests.deadlines import HANGS_S


@pytest.fixture(autouse=True, scope="module")
def drills_may_take_their_time() -> Iterator[None]:
    """What comes up, settles or goes on late is no failure."""
    with pytest.MonkeyPatch.context() as patient:
        for name in (
            "browser_workers.chromium.instances.START_S",
            "bus.server.patience.START_S",
            "ops.drills.days._PATIENCE_S",
            "ops.drills.drill._READY_S",
            "ops.drills.scaled_run._READY_S",
            "ops.drills.scaled_run._SETTLED_S",
            "ops.drills.servers._LEADERS_S",
        ):
            patient.setattr(name, HANGS_S)
        yield
