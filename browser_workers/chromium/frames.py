"""The frames of a page, and worlds of our own in them, as the DevTools protocol has them."""

from collections.abc import Awaitable, Callable

import msgspec

from browser_workers.chromium.calls import Json

Send = Callable[[str, Json], Awaitable[Json]]
"""A call of the DevTools protocol in the process that a document lives in. Raises `CallRefused`."""


class Frame(msgspec.Struct):
    id: str
    securityOrigin: str = ""  # noqa: N815


class _Target(msgspec.Struct):
    targetId: str  # noqa: N815


class FrameTree(msgspec.Struct):
    frame: Frame
    childFrames: "list[FrameTree]" = []  # noqa: N815


async def main_frame(send: Send) -> str:
    """Chromium's name of a page's frame. The browser itself knows it: no document has to answer."""
    info = msgspec.convert((await send("Target.getTargetInfo", {}))["targetInfo"], _Target)
    return info.targetId


async def frame_tree(send: Send) -> FrameTree:
    return msgspec.convert((await send("Page.getFrameTree", {}))["frameTree"], FrameTree)


async def world_in(send: Send, frame: str, name: str) -> int:
    """Chromium's number of the world called `name` in the document that the frame shows, which is made if need be."""
    answer = await send("Page.createIsolatedWorld", {"frameId": frame, "worldName": name})
    return msgspec.convert(answer["executionContextId"], int)
