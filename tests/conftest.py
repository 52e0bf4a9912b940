"""Fixtures that every test may use."""

import pytest
import structlog


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True, scope="session")
def plain_tracebacks() -> None:
    """Those with every local variable, which structlog would print, take a second each."""
    structlog.configure(
        processors=[
            *structlog.get_config()["processors"][:-1],
            structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
        ]
    )
