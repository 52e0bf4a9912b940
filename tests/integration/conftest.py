"""Fixtures of all tests with real processes."""

from collections.abc import Iterator

import pytest

from browser_workers.chromium import instances
from bus.server import patience
from tests.deadlines import HANGS_S


@pytest.fixture(autouse=True, scope="module")
def starts_may_take_their_time() -> Iterator[None]:
    """A Chromium or a server that comes up late is no failure."""
    with pytest.MonkeyPatch.context() as patient:
        patient.setattr(instances, "START_S", HANGS_S)
        patient.setattr(patience, "START_S", HANGS_S)
        yield
