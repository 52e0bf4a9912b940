"""An item of a stream as one JSON object for people and their tools: no screenshot bytes, and screenshots as files when
asked."""

from typing import Any

import anyio
import msgspec

from bus import Item
from ops.console.media_types import SUFFIXES
from schemas.errors import RecordGone
from schemas.ids import subject_token
from schemas.messages import AnyMessage, Judgement, Observation, Screenshot, StepRequest, Trajectory


async def line(item: Item[AnyMessage], folder: anyio.Path | None) -> dict[str, Any]:
    """With a folder, the item's screenshots are written there; `screenshots` holds their paths, or null when they are gone."""
    fields = {
        "seq": item.seq,
        "time": item.time,
        "stream": item.stream,
        "subject": item.subject,
        "message": without_bytes(msgspec.to_builtins(item.message, builtin_types=(bytes,))),
    }
    if folder is not None:
        try:
            fields["screenshots"] = await _write_screenshots(item, folder)
        except RecordGone:
            fields["screenshots"] = None
    return fields


def without_bytes(value: Any) -> Any:
    """Bytes become their number: JSON has no bytes, and base64 of a screenshot is nothing to read."""
    match value:
        case bytes():
            return {"num_bytes": len(value)}
        case dict():
            return {key: without_bytes(part) for key, part in value.items()}
        case list() | tuple():
            return [without_bytes(part) for part in value]
        case _:
            return value


async def _write_screenshots(item: Item[AnyMessage], folder: anyio.Path) -> list[str]:
    named = _named(item.message, await item.screenshots())
    for name, screenshot in named.items():
        path = folder / name
        await path.parent.mkdir(parents=True, exist_ok=True)
        await path.write_bytes(screenshot.data)
    return [str(folder / name) for name in named]


def _named(message: AnyMessage, screenshots: tuple[Screenshot, ...]) -> dict[str, Screenshot]:
    """`<episode>/<attempt>-<step>.<suffix>`; one screenshot has one name, whichever stream it comes by."""
    match message:
        case Judgement(trajectory=trajectory):
            return _named(trajectory, screenshots)
        case Trajectory():
            steps = tuple(range(len(screenshots)))
        case Observation():
            steps = (message.step,)
        case StepRequest():
            steps = message.screenshots
        case _:
            return {}
    # Of a message anybody may have written: an episode's name that leads out of the folder is refused.
    episode = subject_token(message.episode, what="episode")
    return {
        f"{episode}/{message.attempt}-{step}.{SUFFIXES.get(screenshot.media_type, 'bin')}": screenshot
        for step, screenshot in zip(steps, screenshots, strict=True)
    }
