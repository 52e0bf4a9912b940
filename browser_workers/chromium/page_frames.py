"""The frames of a page and the processes that they live in: with site isolation, those of another site have one of their own.

Invariant: frames that do not answer cost one deadline and a moment, all of them together, until they show something else or
were left alone for a while; one that does answer within the moment was late, as on a machine that is full, and is asked once
more. None of them can hold up the page that they are in for longer.
"""

import time
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, TypeVar

import anyio
from playwright._impl._errors import TargetClosedError
from playwright.async_api import CDPSession, Page
from playwright.async_api import Frame as PlaywrightFrame

from browser_workers.chromium.calls import CallRefused, Calls, Json, NoAnswer
from browser_workers.chromium.events import listen
from browser_workers.chromium.frames import Frame, FrameTree, Send, frame_tree, main_frame
from schemas.errors import BrowserError

T = TypeVar("T")
_MOST = 32
"""Frames of a page whose process is looked for."""
_ANSWER_S = 5.0
_MOMENT_S = 2.0
"""In which all answer, once one has not: its process may be theirs, or it was late."""
_MOST_ASKED = 2
QUESTION: Json = {"expression": "0", "returnByValue": True}
_LEFT_ALONE_S = 60.0


class Ask(Protocol):
    async def __call__(self, method: str, params: Json | None = None, *, timeout_s: float = 0.0) -> Json:
        """Raises `NoAnswer` once the deadline has passed."""
        ...


@dataclass(frozen=True, slots=True)
class LocalRoot:
    """The outermost frame of those that a page has in one process."""

    frame: str
    """Empty for the page's own."""
    send: Send
    """Reaches all of those frames. What Chromium numbers there, such as nodes, has its number in that process alone."""
    ask: Ask
    """The same within the caller's own deadline, whether or not the process has answered before."""


@dataclass(frozen=True, slots=True)
class PlacedFrame:
    frame: Frame
    root: LocalRoot
    holder: LocalRoot
    """Where the element is that shows it."""


class PageFrames:
    """Of one page."""

    def __init__(self, page: Page, calls: Calls) -> None:
        self.main = LocalRoot("", calls.send, calls.send)
        self._page = page
        self._calls = calls
        self._roots: dict[PlaywrightFrame, LocalRoot] = {}
        """In processes of their own, as far as is known."""
        self._local: set[PlaywrightFrame] = set()
        """In their parents' processes, for as long as they show what they do now."""
        self._silent_until: dict[PlaywrightFrame, float] = {}
        listen(page, "framenavigated", self._on_navigated)
        listen(page, "framedetached", self._on_detached)

    async def roots(self) -> list[LocalRoot]:
        """Of all frames, the page's own first. What the main threads of their processes use can be told from now on.

        Raises `PageFailed`.
        """
        await self._learn()
        return [self.main, *self._roots.values()]

    async def root_of(self, frame: str) -> LocalRoot | None:
        """Of the frame that Chromium calls so; None where it lives in its parent's process. Raises `PageFailed`."""
        await self._learn()
        return next((root for root in self._roots.values() if root.frame == frame), None)

    async def inside_out(self, most: int) -> list[PlacedFrame]:
        """Those in other frames, at most so many, each before the one that holds it; then the page's own.

        Raises `CallRefused`, `PageFailed`.
        """
        await self._learn()
        placed: list[PlacedFrame] = []
        # A page's frames are listed after those that they are in.
        for frame in reversed(self._page.frames):
            if (root := self._roots.get(frame)) is None:
                continue
            try:
                tree = await frame_tree(root.send)
            except CallRefused:
                continue
            placed += _placed(tree, root)
            placed.append(PlacedFrame(tree.frame, root, self._holder(frame)))
        tree = await frame_tree(self.main.send)
        placed += _placed(tree, self.main)
        return [*islice(placed, most), PlacedFrame(tree.frame, self.main, self.main)]

    def _holder(self, frame: PlaywrightFrame) -> LocalRoot:
        parent = frame.parent_frame
        while parent is not None:
            if (root := self._roots.get(parent)) is not None:
                return root
            parent = parent.parent_frame
        return self.main

    async def _learn(self) -> None:
        found: list[LocalRoot] = []
        for frame in self._page.frames[1 : 1 + _MOST]:
            if frame in self._roots or frame in self._local:
                continue
            try:
                session = await self._calls.call("a frame's session", self._page.context.new_cdp_session(frame))
                send, ask = self._through(frame, session)
                root = self._roots[frame] = LocalRoot(await main_frame(send), send, ask)
                found.append(root)
            except CallRefused:
                self._local.add(frame)
        async with anyio.create_task_group() as group:
            for root in found:
                group.start_soon(self._measure, root)

    async def _measure(self, root: LocalRoot) -> None:
        with suppress(BrowserError):
            await root.send("Performance.enable", {})

    def _through(self, frame: PlaywrightFrame, session: CDPSession) -> tuple[Send, Ask]:
        async def ask(method: str, params: Json | None = None, *, timeout_s: float = 0.0) -> Json:
            return await self._calls.call(method, self._of(frame, session.send(method, params)), timeout_s=timeout_s)

        async def send(method: str, params: Json) -> Json:
            for _ in range(_MOST_ASKED):
                if self._is_left_alone(frame):
                    raise CallRefused("the frame's process does not answer")
                with suppress(NoAnswer):
                    return await ask(method, params, timeout_s=_ANSWER_S)
                await self._find_silent(frame, ask)
            self._leave_alone(frame)
            raise CallRefused(f"the frame's process did not answer within {_ANSWER_S:g} s, {_MOST_ASKED} times")

        return send, ask

    async def _find_silent(self, late: PlaywrightFrame, ask_late: Ask) -> None:
        """Asks all frames that are not left alone, at once, also one whose root is not known yet."""

        async def question(frame: PlaywrightFrame, ask: Ask) -> None:
            try:
                await ask("Runtime.evaluate", QUESTION, timeout_s=_MOMENT_S)
            except NoAnswer:
                self._leave_alone(frame)
            except BrowserError:
                # Whoever uses it next is told.
                return

        async with anyio.create_task_group() as group:
            for frame, ask in ({frame: root.ask for frame, root in self._roots.items()} | {late: ask_late}).items():
                if not self._is_left_alone(frame):
                    group.start_soon(question, frame, ask)

    def _leave_alone(self, frame: PlaywrightFrame) -> None:
        self._silent_until[frame] = time.monotonic() + _LEFT_ALONE_S

    def _is_left_alone(self, frame: PlaywrightFrame) -> bool:
        return time.monotonic() < self._silent_until.get(frame, 0.0)

    async def _of(self, frame: PlaywrightFrame, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except TargetClosedError as error:
            # It is gone, or shows what its parent's process may show.
            self._roots.pop(frame, None)
            raise CallRefused("the frame's process is gone") from error

    def _on_navigated(self, frame: PlaywrightFrame) -> None:
        self._local.discard(frame)
        self._silent_until.pop(frame, None)

    def _on_detached(self, frame: PlaywrightFrame) -> None:
        self._on_navigated(frame)
        self._roots.pop(frame, None)


def _placed(tree: FrameTree, root: LocalRoot) -> list[PlacedFrame]:
    return [PlacedFrame(frame, root, root) for frame in _below(tree)]


def _below(tree: FrameTree) -> Iterator[Frame]:
    """Innermost first."""
    for child in tree.childFrames:
        yield from _below(child)
        yield child.frame
