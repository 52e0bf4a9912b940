"""One episode as a strip of its screenshots, each with what the policy did drawn in."""

import io
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from agents.describing import sentence
from ops.roles.click_mark import draw_click, pointed_at
from schemas.messages import Observation, StepRequest

_FRAME_HEIGHT = 420
_MOST_COLUMNS = 6
_GAP = 16
_CAPTION = 44
_HEADER = 40
_PAPER, _INK, _FAINT = "#ffffff", "#202020", "#8a8a8a"


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One step."""

    screenshot: bytes
    """PNG or JPEG, as the policy saw it."""
    caption: str = ""
    point: tuple[float, float] | None = None
    """Where it pointed, on the 0-1000 grid."""


def frame_of(seen: Observation, step: StepRequest | None) -> Frame:
    """What was seen, and what was done then; None: the episode ended there."""
    if step is None:
        return Frame(screenshot=seen.screenshot.data, caption="the end")
    action = step.action
    place = pointed_at(seen, action.point, action.element)
    return Frame(screenshot=seen.screenshot.data, caption=sentence(action, seen.elements), point=place)


def draw_strip(frames: Sequence[Frame], *, title: str) -> bytes:
    """A PNG of all frames in reading order, at most six a row; clicks are numbered by step from 1."""
    if not frames:
        raise ValueError("a strip needs at least one frame")
    screenshots = [_drawn(frame, number) for number, frame in enumerate(frames, 1)]
    columns = min(len(screenshots), _MOST_COLUMNS)
    rows = -(-len(screenshots) // columns)
    cell_width = max(screenshot.width for screenshot in screenshots) + _GAP
    cell_height = _FRAME_HEIGHT + _CAPTION
    title_width = round(_font(18).getlength(title))
    width = max(columns * cell_width + _GAP, title_width + 2 * _GAP)
    sheet = Image.new("RGB", (width, _HEADER + rows * cell_height + _GAP // 2), _PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((_GAP, _HEADER // 2), title, _INK, _font(18), anchor="lm")
    for index, (screenshot, frame) in enumerate(zip(screenshots, frames, strict=True)):
        x = _GAP + index % columns * cell_width
        y = _HEADER + index // columns * cell_height
        sheet.paste(screenshot, (x, y))
        draw.rectangle((x - 1, y - 1, x + screenshot.width, y + screenshot.height), outline=_FAINT)
        caption = _fitted(f"{index + 1}  {frame.caption}", screenshot.width)
        draw.text((x, y + screenshot.height + 8), caption, _INK, _font(14))
    encoded = io.BytesIO()
    sheet.save(encoded, "PNG")
    return encoded.getvalue()


def _drawn(frame: Frame, number: int) -> Image.Image:
    with Image.open(io.BytesIO(frame.screenshot)) as opened:
        screenshot = opened.convert("RGB")
    width = max(1, round(screenshot.width * _FRAME_HEIGHT / screenshot.height))
    small = screenshot.height < _FRAME_HEIGHT
    screenshot = screenshot.resize((width, _FRAME_HEIGHT), Image.Resampling.NEAREST if small else Image.Resampling.LANCZOS)
    if frame.point is not None:
        draw_click(screenshot, frame.point[0] / 1000 * width, frame.point[1] / 1000 * _FRAME_HEIGHT, number)
    return screenshot


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _fitted(text: str, width: int) -> str:
    """The text, shortened to `width` pixels."""
    font = _font(14)
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "...") > width:
        text = text[:-1]
    return text + "..."
