"""One episode as a film that any browser plays: an animated WebP, a picture for every step."""

import io
from collections.abc import Sequence

from PIL import Image, ImageDraw

from ops.pictures.frame import CAPTION_SIZE, INK, PAPER, Frame, drawn, fitted, font

MOST_FRAMES = 120
_FRAME_HEIGHT = 480
_CAPTION = 32
_SHOWN_MS, _LAST_MS = 1200, 3000
_QUALITY = 80


def draw_film(frames: Sequence[Frame]) -> bytes:
    """Of one frame or more; what is behind the first 120 is left out. Plays for ever, and rests on the last picture.

    Raises:
        ValueError: there is no frame, or one that is no picture.
    """
    if not frames:
        raise ValueError("a film needs at least one frame")
    pictures = [_captioned(frame, number) for number, frame in enumerate(frames[:MOST_FRAMES], 1)]
    size = max(picture.width for picture in pictures), _FRAME_HEIGHT + _CAPTION
    first, *others = (_on_paper(picture, size) for picture in pictures)
    shown_ms = [_SHOWN_MS] * len(others) + [_LAST_MS]
    encoded = io.BytesIO()
    first.save(encoded, "WEBP", save_all=True, append_images=others, duration=shown_ms, loop=0, quality=_QUALITY)
    return encoded.getvalue()


def _captioned(frame: Frame, number: int) -> Image.Image:
    screenshot = drawn(frame, number, _FRAME_HEIGHT)
    picture = Image.new("RGB", (screenshot.width, _FRAME_HEIGHT + _CAPTION), PAPER)
    picture.paste(screenshot, (0, 0))
    caption = fitted(f"{number}  {frame.caption}", screenshot.width - 16)
    ImageDraw.Draw(picture).text((8, _FRAME_HEIGHT + _CAPTION // 2), caption, INK, font(CAPTION_SIZE), anchor="lm")
    return picture


def _on_paper(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Windows may differ in size."""
    if picture.size == size:
        return picture
    paper = Image.new("RGB", size, PAPER)
    paper.paste(picture, (0, 0))
    return paper
