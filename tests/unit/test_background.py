"""Tasks beside a body: whatever fails, whoever handles errors by their kind meets one error."""

import anyio
import pytest

from bus.background import background
from schemas.errors import BusUnavailable, ConfigurationError, PageFailed

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def fails() -> None:
    raise BusUnavailable("the companion")


async def fails_when_cancelled() -> None:
    try:
        await anyio.sleep_forever()
    finally:
        await fails()


async def test_what_the_body_raises_comes_out_as_it_is() -> None:
    with pytest.raises(PageFailed, match="the body"):
        async with background(anyio.sleep_forever):
            raise PageFailed("the body")


async def test_what_a_companion_raises_comes_out_as_it_is() -> None:
    with pytest.raises(BusUnavailable, match="the companion"):
        async with background(fails):
            await anyio.sleep_forever()


async def test_where_both_fail_it_is_the_bodys_and_the_other_is_noted() -> None:
    async def body() -> None:
        async with background(fails_when_cancelled):
            await anyio.lowlevel.checkpoint()
            raise PageFailed("the body")

    with pytest.raises(PageFailed, match="the body") as raised:
        await body()
    assert raised.value.__notes__ == ["beside it: BusUnavailable: the companion"]


async def test_of_several_companions_it_is_the_first() -> None:
    async def second() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise ConfigurationError("the second")

    with pytest.raises(BusUnavailable, match="the companion") as raised:
        async with background(second, fails):
            await anyio.sleep_forever()
    assert raised.value.__notes__ == ["beside it: ConfigurationError: the second"]


async def test_what_several_tasks_of_a_companion_raise_stays_together() -> None:
    """A group that somebody made is an error like any other."""

    async def several() -> None:
        raise ExceptionGroup("both", [PageFailed("a"), PageFailed("b")])

    with pytest.raises(ExceptionGroup, match="both"):
        async with background(several):
            await anyio.sleep_forever()


async def test_a_body_that_is_cancelled_from_outside_raises_nothing() -> None:
    with anyio.move_on_after(0.01) as scope:
        async with background(anyio.sleep_forever):
            await anyio.sleep_forever()
    assert scope.cancelled_caught
