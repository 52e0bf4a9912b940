"""Images of other people's data as screenshots, byte for byte: out of data URLs, files beside the data, or columns."""

import base64
import binascii
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import unquote_to_bytes

from PIL import Image

from ops.sft.fields import items_in
from ops.sft.findings import BadRecord
from schemas.messages import Screenshot

FindImage = Callable[[object, str], Screenshot]
"""From what stands for an image in a record, and what that is called. Raises `BadRecord`."""
PLACEHOLDER = "<image>"
"""Of ShareGPT, LLaMA-Factory and many others."""
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
_MOST_OBLONG = 200
"""Times as long as wide: no image processor of a supported model takes more."""


def image_finder(folder: Path) -> FindImage:
    """Finds images by data URLs, by paths relative to `folder`, or as their bytes."""

    def find(value: object, what: str) -> Screenshot:
        match value:
            case bytes():
                return screenshot_of(value, what)
            case {"bytes": bytes(data)}:
                return screenshot_of(data, what)
            case {"path": str(path)} | str(path):
                return screenshot_of(_bytes_at(folder, path, what), what)
            case _:
                raise BadRecord(f"{what} is no image: a data URL, a path or bytes are expected")

    return find


def screenshot_of(data: bytes, what: str) -> Screenshot:
    """Raises `BadRecord` where it cannot be opened as an image."""
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            width, height = image.size
            media_type = Image.MIME.get(image.format or "", "")
            image.load()
    except Exception as error:  # the boundary to Pillow, whose decoders raise what they like for a damaged file
        raise BadRecord(f"{what} cannot be opened as an image ({', '.join(_FORMATS)}): {error}") from error
    if max(width, height) > _MOST_OBLONG * min(width, height):
        raise BadRecord(f"{what} has {width} x {height} pixels: no model takes so long a shape")
    return Screenshot(data=data, media_type=media_type or "application/octet-stream", width=width, height=height)


def blank() -> Screenshot:
    """What stands where nothing was seen: one white pixel. No prompt shows it."""
    encoded = io.BytesIO()
    Image.new("RGB", (1, 1), "white").save(encoded, "PNG")
    return Screenshot(data=encoded.getvalue(), media_type="image/png", width=1, height=1)


def _bytes_at(folder: Path, place: str, what: str) -> bytes:
    if place.startswith("data:"):
        return _from_data_url(place, what)
    if place.startswith(("http://", "https://")):
        raise BadRecord(f"{what} is on the web: download the images, and name their paths")
    path = folder / place.removeprefix("file://")
    try:
        if not path.is_file():
            raise BadRecord(f"{what} names {place!r:.200}, and there is no such file in {folder}")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise BadRecord(f"{what} cannot be read from {place!r:.200} in {folder}: {_said(error)}") from error


def _from_data_url(url: str, what: str) -> bytes:
    head, comma, body = url.partition(",")
    if not comma:
        raise BadRecord(f"{what} is a data URL without data")
    if not head.endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRecord(f"{what} is a data URL that is not base64: {error}") from error


def _said(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def image_queue(images: object, find: FindImage) -> "ImageQueue":
    """Of a record's column of images; one that is no list is a single one."""
    listed = [images] if isinstance(images, str | bytes | Mapping) else items_in(images, "images")
    return ImageQueue([find(value, f"image {number}") for number, value in enumerate(listed, start=1)])


class ImageQueue:
    """A record's images, each taken by the placeholder that stands for it, in order."""

    def __init__(self, images: list[Screenshot]) -> None:
        self._images = images
        self._taken = 0

    def take(self) -> Screenshot:
        """Raises `BadRecord` where none is left."""
        if self._taken == len(self._images):
            raise BadRecord(f"it has more placeholders for images than its {len(self._images)} images")
        self._taken += 1
        return self._images[self._taken - 1]

    def close(self) -> None:
        """Raises `BadRecord` where some were not taken."""
        if self._taken < len(self._images):
            raise BadRecord(f"it has {len(self._images)} images and placeholders for {self._taken} of them")


def split_at(text: str, placeholder: str, images: ImageQueue) -> tuple[str | Screenshot, ...]:
    """The text with an image in the place of every placeholder."""
    parts: list[str | Screenshot] = []
    for number, piece in enumerate(text.split(placeholder)):
        if number:
            parts.append(images.take())
        if piece:
            parts.append(piece)
    return tuple(parts)
