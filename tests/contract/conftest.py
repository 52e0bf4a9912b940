"""Every contract test runs on both buses."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.backends import BACKENDS, Backend
from tests.deadlines import HANGS_S


@pytest.fixture(autouse=True)
def settling_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is handed back on leaving is not cut off, nor is a confirmation given up, however late the server hears of it."""
    for name in ("work._ACK_S", "work._ACK_AGAIN_S"):
        monkeypatch.setattr(f"bus.jetstream.{name}", HANGS_S)
    for closing in (
        "work._CLOSING_S",
        "lease._CLOSING_S",
        "offers._CLOSING_S",
        "connection.CLOSING_S",
        "subscriptions.CLOSING_S",
    ):
        monkeypatch.setattr(f"bus.jetstream.{closing}", HANGS_S)


@pytest.fixture
def answers_may_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first try is answered."""
    monkeypatch.setattr("bus.jetstream.retrying._FIRST_S", HANGS_S)
    monkeypatch.setattr("bus.jetstream.streams._EXPLAINED_S", HANGS_S)


@pytest.fixture(params=[pytest.param("memory"), pytest.param("jetstream", marks=pytest.mark.integration)])
async def backend(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Backend]:
    async with BACKENDS[request.param](tmp_path) as backend:
        yield backend
