"""Fixtures of all tests with real processes."""

from collections.abc import Iterator

import pytest

from browser_workers.chromium import evaluation, instances, navigation
from bus.server import patience
from tests.deadlines import HANGS_S


@pytest.fixture(autouse=True, scope="module")
def starts_may_take_their_time() -> Iterator[None]:
    """A Chromium, a server or a document that comes late is no failure."""
    with pytest.MonkeyPatch.context() as patient:
        patient.setattr(instances, "START_S", HANGS_S)
        patient.setattr(navigation, "LOAD_CAP_S", HANGS_S)
        patient.setattr(evaluation, "LOAD_CAP_S", HANGS_S)
        patient.setattr(patience, "START_S", HANGS_S)
        yield
