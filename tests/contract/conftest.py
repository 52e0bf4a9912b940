"""Every contract test runs on both buses."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.backends import BACKENDS, Backend


@pytest.fixture(params=[pytest.param("memory"), pytest.param("jetstream", marks=pytest.mark.integration)])
async def backend(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Backend]:
    async with BACKENDS[request.param](tmp_path) as backend:
        yield backend
