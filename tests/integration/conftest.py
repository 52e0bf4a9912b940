"""Fixtures of all tests with real processes."""

from collections.abc import Iterator

import pytest

from browser_workers.chromium import evaluation, instances, navigation
from browser_workers.chromium.process import launch
from bus.jetstream import work
from bus.server import patience
from tests.deadlines import HANGS_S

_ACK_S = 60.0
"""A server that was killed may never confirm what it has forgotten."""


@pytest.fixture(autouse=True, scope="module")
def starts_may_take_their_time() -> Iterator[None]:
    """A Chromium, its answer, a server, a document or a confirmation that comes late is no failure."""
    with pytest.MonkeyPatch.context() as patient:
        patient.setattr(instances, "START_S", HANGS_S)
        patient.setattr(navigation, "LOAD_CAP_S", HANGS_S)
        patient.setattr(evaluation, "LOAD_CAP_S", HANGS_S)
        patient.setattr(launch, "_RELIEF_S", HANGS_S / 4)
        patient.setattr(launch, "_ANSWER_S", HANGS_S / 4)
        patient.setattr(patience, "START_S", HANGS_S)
        patient.setattr(work, "_ACK_S", _ACK_S)
        yield
