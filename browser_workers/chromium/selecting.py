"""Chooses an option of a native select. Its list opens outside the page, where neither screenshots nor the mouse reach it.

The script runs in a world of its own, whose functions a page cannot replace.
"""

import json
from pathlib import Path

import msgspec

from browser_workers.actions import Point
from browser_workers.chromium.calls import CallRefused, Json
from browser_workers.chromium.frames import Send, world_in
from browser_workers.chromium.tab import Tab

_TEXT_LIMIT = 4000
_WORLD = "millrace-select"
_MOST_PROCESSES = 8
"""That frames within each other may have."""
_SCRIPT = (Path(__file__).parent / "scripts" / "select_option.js").read_text()


class _Node(msgspec.Struct):
    backendNodeId: int  # noqa: N815
    frameId: str  # noqa: N815


class _Object(msgspec.Struct):
    objectId: str = ""  # noqa: N815
    value: object = None


class _Viewport(msgspec.Struct):
    pageX: float = 0.0  # noqa: N815
    pageY: float = 0.0  # noqa: N815


class _Owner(msgspec.Struct):
    frameId: str = ""  # noqa: N815


class _Box(msgspec.Struct):
    content: tuple[float, float, float, float, float, float, float, float]
    """x, y of its corners from the top left, clockwise."""


async def select_option(tab: Tab, point: Point, wanted: str) -> str:
    """The option with the label or value `wanted` of the select at `point`; returns why that cannot be, or nothing."""
    try:
        node, send = await _at(tab, point)
        world = await world_in(send, node.frameId, _WORLD)
        resolved = await send("DOM.resolveNode", {"backendNodeId": node.backendNodeId, "executionContextId": world})
        params: Json = {
            "objectId": msgspec.convert(resolved["object"], _Object).objectId,
            "functionDeclaration": _SCRIPT,
            "arguments": [{"value": wanted}, {"value": _TEXT_LIMIT}],
            "returnByValue": True,
        }
        chosen = await send("Runtime.callFunctionOn", params)
    except CallRefused:
        return "there is nothing at that place that could be selected from"
    if "exceptionDetails" in chosen:
        return f"the option {json.dumps(wanted[:200])} could not be selected: the page's script failed"
    return str(msgspec.convert(chosen["result"], _Object).value)


async def _at(tab: Tab, point: tuple[float, float]) -> tuple[_Node, Send]:
    """The innermost element there, and how to reach the process that it has its number in. Raises `CallRefused`."""
    (x, y), root = point, tab.frames.main
    for _ in range(_MOST_PROCESSES):
        # Asked for in the document's coordinates, unlike every input.
        viewport = msgspec.convert((await root.send("Page.getLayoutMetrics", {}))["cssVisualViewport"], _Viewport)
        place: Json = {"x": round(x + viewport.pageX), "y": round(y + viewport.pageY)}
        node = msgspec.convert(await root.send("DOM.getNodeForLocation", place), _Node)
        at: Json = {"backendNodeId": node.backendNodeId}
        owner = msgspec.convert((await root.send("DOM.describeNode", at))["node"], _Owner)
        inner = await tab.frames.root_of(owner.frameId) if owner.frameId else None
        if inner is None:
            return node, root.send
        box = msgspec.convert((await root.send("DOM.getBoxModel", at))["model"], _Box)
        across, down = _share(box, x, y)
        width, height = await _size(inner.send, owner.frameId)
        x, y, root = across * width, down * height, inner
    raise CallRefused("too many frames within each other")


def _share(box: _Box, x: float, y: float) -> tuple[float, float]:
    """How far across and down a box a point is, from 0 to 1, however the box is scaled or turned. Raises `CallRefused`."""
    left, top, right, right_y, _, _, bottom_x, bottom = box.content
    (ax, ay), (bx, by), (x, y) = (right - left, right_y - top), (bottom_x - left, bottom - top), (x - left, y - top)
    area = ax * by - ay * bx
    if not area:
        raise CallRefused("the frame has no room")
    return (x * by - y * bx) / area, (ax * y - ay * x) / area


async def _size(send: Send, frame: str) -> tuple[float, float]:
    """Of a frame's viewport, as its own document counts."""
    context = await world_in(send, frame, _WORLD)
    params: Json = {"expression": "[innerWidth, innerHeight]", "contextId": context, "returnByValue": True}
    answer = await send("Runtime.evaluate", params)
    return msgspec.convert(msgspec.convert(answer["result"], _Object).value, tuple[float, float])
