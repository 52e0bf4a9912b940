"""What a listener of Playwright's events raises ends where it listens."""

import ast
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from playwright.async_api import CDPSession, Page

from browser_workers.chromium.events import listen
from browser_workers.chromium.sign_in import sign_in
from browser_workers.network.gate import Gate

_PACKAGE = Path(__file__).parents[2] / "browser_workers"
_HOME = _PACKAGE / "chromium" / "events.py"


class Emitter:
    """As Playwright's: what a listener raises comes out of `emit`. No call is ever answered."""

    def __init__(self) -> None:
        self.listeners: dict[str, list[Callable[..., object]]] = defaultdict(list)

    def on(self, event: str, listener: Callable[..., object]) -> None:
        self.listeners[event].append(listener)

    def remove_listener(self, event: str, listener: Callable[..., object]) -> None:
        self.listeners[event].remove(listener)

    def emit(self, event: str, *given: object) -> None:
        for listener in tuple(self.listeners[event]):
            listener(*given)

    async def send(self, method: str, params: dict[str, Any]) -> None:
        await anyio.sleep_forever()


def test_what_a_listener_raises_is_told_to_its_owner_and_to_nobody_else() -> None:
    emitter, reasons = Emitter(), list[str]()
    heard: list[object] = []
    listen(emitter, "page", lambda given: {}[given], reasons.append)
    end = listen(emitter, "page", heard.append)
    emitter.emit("page", 1)
    assert heard == [1]
    assert len(reasons) == 1
    assert "KeyError" in reasons[0]
    end()
    emitter.emit("page", 2)
    assert heard == [1]


@pytest.mark.anyio
async def test_who_has_given_up_signing_in_listens_no_more() -> None:
    """An event that came then met a closed stream, and its error came out of another tab's call."""
    protocol = Emitter()
    with anyio.move_on_after(0.01):
        await sign_in(cast(Page, None), cast(CDPSession, protocol), cast(Gate, None))
    assert set(protocol.listeners) == {"Fetch.requestPaused", "Fetch.authRequired"}
    assert not any(protocol.listeners.values())


@pytest.mark.parametrize("module", sorted(_PACKAGE.rglob("*.py")), ids=lambda module: str(module.relative_to(_PACKAGE)))
def test_events_are_listened_to_in_one_way(module: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Call)]
    own = [call.lineno for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in ("on", "once")]
    assert bool(own) == (module == _HOME), "listen to it by browser_workers.chromium.events.listen"
