"""Fixtures that every test may use."""

import gc
import signal
from collections.abc import Iterator

import hypothesis
import pytest
import structlog

from bus.skipping import Skipped, skipped

# How long an example takes says how much else the machine does; fixtures serve all examples of a test.
hypothesis.settings.register_profile(
    "any machine",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture],
)
hypothesis.settings.load_profile("any machine")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays, a million objects: looking through them over and over took a tenth of all tests' CPU."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


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


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard() -> None:
    """A shell that starts tests in the background has them ignore it, and all that they start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def nothing_skipped_yet() -> None:
    """A process counts what it left out for as long as it lives; every test begins with none."""
    vars(skipped).update(vars(Skipped()))
