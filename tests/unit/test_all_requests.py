"""Requests of browsers elsewhere are judged one by one: what goes wrong with one is no other's matter."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import pytest
from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from browser_workers.chromium.all_requests import AllRequests

pytestmark = pytest.mark.anyio
PAUSED = {"requestId": "1", "request": {"url": "http://127.0.0.1/"}, "frameId": "f"}


@dataclass
class Protocol:
    """Of a browser that knows no targets."""

    heard: list[Callable[[Any], None]] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    def on(self, event: str, listener: Callable[[Any], None]) -> None:
        self.heard.append(listener)

    refuses: bool = False
    """To have its requests asked for."""

    async def send(self, method: str, params: dict[str, object] | None = None) -> dict[str, object]:
        if method != "Fetch.enable":
            self.answers.append(method)
        elif self.refuses:
            raise PlaywrightError("'Fetch.enable' wasn't found")
        return {"targetInfos": []}


@dataclass(eq=False)
class Asker:
    asked: Callable[[], bool]
    context_id: str = "c"

    def refusal(self, url: str) -> str:
        return "private"

    def note_refusal(self, url: str) -> None: ...

    async def has_frame(self, frame: str) -> bool:
        return self.asked()


async def answered(protocol: Protocol, requests: AllRequests, *askers: Asker) -> list[str]:
    async with anyio.create_task_group() as group:
        for asker in askers:
            await requests.add(asker, group)
        protocol.heard[0](PAUSED)
    return [answer for answer in protocol.answers if answer.startswith("Fetch.")]


async def test_an_episode_that_ends_while_it_is_asked_is_nobodys_failure() -> None:
    protocol = Protocol()
    requests = AllRequests(cast(CDPSession, protocol))

    def ends() -> bool:
        for each in (one, other):
            requests.remove(each)
        return False

    one, other = Asker(ends), Asker(ends)
    assert await answered(protocol, requests, one, other) == ["Fetch.continueRequest"]


async def test_what_nobody_foresaw_refuses_that_request_alone() -> None:
    def fails() -> bool:
        raise KeyError("frame")

    protocol = Protocol()
    assert await answered(protocol, AllRequests(cast(CDPSession, protocol)), Asker(fails)) == ["Fetch.failRequest"]


async def test_no_episode_begins_in_a_browser_that_does_not_ask() -> None:
    protocol = Protocol(refuses=True)
    requests = AllRequests(cast(CDPSession, protocol))
    async with anyio.create_task_group() as group:
        for _ in range(2):
            with pytest.raises(PlaywrightError, match="wasn't found"):
                await requests.add(Asker(lambda: True), group)
        protocol.refuses = False
        await requests.add(Asker(lambda: True), group)
    assert len(protocol.heard) == 1, "a request is answered once"


async def test_a_request_of_another_form_is_refused() -> None:
    protocol = Protocol()
    requests = AllRequests(cast(CDPSession, protocol))
    async with anyio.create_task_group() as group:
        await requests.add(Asker(lambda: True), group)
        protocol.heard[0]({"requestId": "1"})
    assert protocol.answers == ["Fetch.failRequest"]
