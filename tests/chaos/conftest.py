"""Fixtures of all drills."""

from collections.abc import Iterator

import pytest

from tests.deadlines import HANGS_S


@pytest.fixture(autouse=True, scope="module")
def drills_may_take_their_time() -> Iterator[None]:
    """What comes up, settles or goes on late is no failure."""
    with pytest.MonkeyPatch.context() as patient:
        for name in (
            "days._PATIENCE_S",
            "drill._READY_S",
            "scaled_run._READY_S",
            "scaled_run._SETTLED_S",
            "servers._LEADERS_S",
        ):
            patient.setattr(f"ops.drills.{name}", HANGS_S)
        yield
