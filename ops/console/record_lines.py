"""An item of a stream as one JSON object for people and their tools: no picture bytes, and pictures as files when asked."""

from typing import Any

import anyio
import msgspec

from bus import Item
from schemas.errors import RecordGone
from schemas.ids import subject_token
from schemas.messages import AnyMessage, Judgement, Observation, Picture, StepRequest, Trajectory

_SUFFIXES = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp"}


async def line(item: Item[AnyMessage], folder: anyio.Path | None) -> dict[str, Any]:
    """With a folder, the item's pictures are written there, and `pictures` holds their paths, or null when they are gone."""
    fields = {
        "seq": item.seq,
        "time": item.time,
        "stream": item.stream,
        "subject": item.subject,
        "message": without_bytes(msgspec.to_builtins(item.message, builtin_types=(bytes,))),
    }
    if folder is not None:
        try:
            fields["pictures"] = await _write_pictures(item, folder)
        except RecordGone:
            fields["pictures"] = None
    return fields


def without_bytes(value: Any) -> Any:
    """Bytes become their number: JSON has no bytes, and base64 of a picture is nothing to read."""
    match value:
        case bytes():
            return {"num_bytes": len(value)}
        case dict():
            return {key: without_bytes(part) for key, part in value.items()}
        case list() | tuple():
            return [without_bytes(part) for part in value]
        case _:
            return value


async def _write_pictures(item: Item[AnyMessage], folder: anyio.Path) -> list[str]:
    named = _named(item.message, await item.pictures())
    for name, picture in named.items():
        path = folder / name
        await path.parent.mkdir(parents=True, exist_ok=True)
        await path.write_bytes(picture.data)
    return [str(folder / name) for name in named]


def _named(message: AnyMessage, pictures: tuple[Picture, ...]) -> dict[str, Picture]:
    """`<episode>/<attempt>-<step>.<suffix>`; one picture has one name, whichever stream it comes by."""
    match message:
        case Judgement(trajectory=trajectory):
            return _named(trajectory, pictures)
        case Trajectory():
            steps = tuple(range(len(pictures)))
        case Observation():
            steps = (message.step,)
        case StepRequest():
            steps = message.pictures
        case _:
            return {}
    # Of a message anybody may have written: an episode's name that leads out of the folder is refused.
    episode = subject_token(message.episode, what="episode")
    return {
        f"{episode}/{message.attempt}-{step}.{_SUFFIXES.get(picture.media_type, 'bin')}": picture
        for step, picture in zip(steps, pictures, strict=True)
    }
