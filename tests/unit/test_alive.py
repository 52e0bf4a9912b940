"""The file that says that a worker's event loop goes round."""

from functools import partial
from pathlib import Path

import anyio
import pytest

from bus.background import background
from ops.processes import alive

pytestmark = pytest.mark.anyio


async def test_it_is_touched_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "alive"
    monkeypatch.setenv(alive.VARIABLE, str(file))
    monkeypatch.setattr(alive, "_EVERY_S", 0.01)
    async with background(alive.show_alive):
        for _ in range(3):
            while not file.exists():  # noqa: ASYNC110 - nobody tells
                await anyio.sleep(0.01)
            file.unlink()


async def test_nobody_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(alive.VARIABLE, raising=False)
    await partial(alive.show_alive)()
