"""One episode as a strip of its screenshots."""

import io
from collections.abc import Sequence

from PIL import Image, ImageDraw

from ops.pictures.frame import CAPTION_SIZE, FAINT, INK, PAPER, Frame, drawn, fitted, font

_FRAME_HEIGHT = 420
_MOST_COLUMNS = 6
_GAP = 16
_CAPTION = 44
_HEADER = 40


def draw_strip(frames: Sequence[Frame], *, title: str) -> bytes:
    """A PNG of all frames in reading order, at most six a row; clicks are numbered by step from 1."""
    if not frames:
        raise ValueError("a strip needs at least one frame")
    screenshots = [drawn(frame, number, _FRAME_HEIGHT) for number, frame in enumerate(frames, 1)]
    columns = min(len(screenshots), _MOST_COLUMNS)
    rows = -(-len(screenshots) // columns)
    cell_width = max(screenshot.width for screenshot in screenshots) + _GAP
    cell_height = _FRAME_HEIGHT + _CAPTION
    title_width = round(font(18).getlength(title))
    width = max(columns * cell_width + _GAP, title_width + 2 * _GAP)
    sheet = Image.new("RGB", (width, _HEADER + rows * cell_height + _GAP // 2), PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((_GAP, _HEADER // 2), title, INK, font(18), anchor="lm")
    for index, (screenshot, frame) in enumerate(zip(screenshots, frames, strict=True)):
        x = _GAP + index % columns * cell_width
        y = _HEADER + index // columns * cell_height
        sheet.paste(screenshot, (x, y))
        draw.rectangle((x - 1, y - 1, x + screenshot.width, y + screenshot.height), outline=FAINT)
        caption = fitted(f"{index + 1}  {frame.caption}", screenshot.width)
        draw.text((x, y + screenshot.height + 8), caption, INK, font(CAPTION_SIZE))
    encoded = io.BytesIO()
    sheet.save(encoded, "PNG")
    return encoded.getvalue()
