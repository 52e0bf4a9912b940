"""Elements that only scripts make clickable: for how long a document that says them late is asked."""

from typing import Any, cast

import anyio.lowlevel
import pytest

from browser_workers.chromium import listeners as listeners_module
from browser_workers.chromium.calls import Json
from browser_workers.chromium.listeners import Listeners
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio


class Document:
    """One with a listener for clicks; also its isolated world."""

    context = 1

    def __init__(self) -> None:
        self.told: list[int] = []

    async def value(self, expression: str) -> None: ...

    async def send(self, method: str, params: Json) -> Json:
        await anyio.lowlevel.checkpoint()
        if method == "Runtime.evaluate":
            return {"result": {"objectId": "document"}}
        return {"listeners": [{"type": "click", "backendNodeId": 7}]}

    async def give(self, function: str, backend_nodes: list[int]) -> None:
        self.told += backend_nodes


@pytest.mark.parametrize(("num_late", "told"), [(0, [7]), (1, [7]), (2, [])])
async def test_a_document_is_given_up_once_it_was_late_twice(
    monkeypatch: pytest.MonkeyPatch, num_late: int, told: list[int]
) -> None:
    document = Document()
    listeners = Listeners(cast(Any, document.send), cast(Any, document))
    for _ in range(num_late):
        with monkeypatch.context() as late:
            late.setattr(listeners_module, "_PATIENCE_S", 0.0)
            await listeners.learn()
    monkeypatch.setattr(listeners_module, "_PATIENCE_S", HANGS_S)
    await listeners.learn()
    assert document.told == told


async def test_another_document_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    document = Document()
    listeners = Listeners(cast(Any, document.send), cast(Any, document))
    with monkeypatch.context() as late:
        late.setattr(listeners_module, "_PATIENCE_S", 0.0)
        for _ in range(2):
            await listeners.learn()
    document.context = 2
    await listeners.learn()
    assert document.told == [7]
