"""Chooses an option of a native select. Its list opens outside the page, where neither screenshots nor the mouse reach it.

The script runs in a world of its own, whose functions a page cannot replace.
"""

import json
from pathlib import Path

import msgspec

from browser_workers.actions import Point
from browser_workers.chromium.calls import CallRefused, Json
from browser_workers.chromium.frames import world_in
from browser_workers.chromium.tab import Tab

_TEXT_LIMIT = 4000
_WORLD = "millrace-select"
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


async def select_option(tab: Tab, point: Point, wanted: str) -> str:
    """The option with the label or value `wanted` of the select at `point`; returns why that cannot be, or nothing."""
    try:
        # Asked for in the document's coordinates, unlike every input.
        viewport = msgspec.convert((await tab.send("Page.getLayoutMetrics"))["cssVisualViewport"], _Viewport)
        place: Json = {"x": round(point[0] + viewport.pageX), "y": round(point[1] + viewport.pageY)}
        answer = await tab.send("DOM.getNodeForLocation", place)
        node = msgspec.convert(answer, _Node)
        world = await world_in(tab.send, node.frameId, _WORLD)
        resolved = await tab.send("DOM.resolveNode", {"backendNodeId": node.backendNodeId, "executionContextId": world})
        params: Json = {
            "objectId": msgspec.convert(resolved["object"], _Object).objectId,
            "functionDeclaration": _SCRIPT,
            "arguments": [{"value": wanted}, {"value": _TEXT_LIMIT}],
            "returnByValue": True,
        }
        chosen = await tab.send("Runtime.callFunctionOn", params)
    except CallRefused:
        return "there is nothing at that place that could be selected from"
    if "exceptionDetails" in chosen:
        return f"the option {json.dumps(wanted[:200])} could not be selected: the page's script failed"
    return str(msgspec.convert(chosen["result"], _Object).value)
