"""One step of an episode as a picture: its screenshot in a given size, with what the policy did drawn in."""

from dataclasses import dataclass

from PIL import Image, ImageFont

from agents.describing import sentence
from ops.pictures.click_mark import draw_click, pointed_at
from schemas.messages import Observation, StepRequest
from trainer.pictures import opened

CAPTION_SIZE = 14
_MOST_WIDTH = 1280
"""Pixels: a screenshot that is much wider than high would be enlarged beyond all memory."""
PAPER, INK, FAINT = "#ffffff", "#202020", "#8a8a8a"


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


def drawn(frame: Frame, number: int, height: int) -> Image.Image:
    """So high, or lower where it would be too wide. The click carries the step's number, from 1.

    Raises:
        ValueError: the screenshot is no picture.
    """
    try:
        screenshot = opened(frame.screenshot)
    except ValueError as error:
        raise ValueError(f"step {number}: {error}") from error
    scale = min(height / screenshot.height, _MOST_WIDTH / screenshot.width)
    size = max(1, round(screenshot.width * scale)), max(1, round(screenshot.height * scale))
    screenshot = screenshot.resize(size, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS)
    if frame.point is not None:
        draw_click(screenshot, frame.point[0] / 1000 * size[0], frame.point[1] / 1000 * size[1], number)
    return screenshot


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def fitted(text: str, width: int) -> str:
    """The caption, shortened to `width` pixels."""
    used = font(CAPTION_SIZE)
    if used.getlength(text) <= width:
        return text
    while text and used.getlength(text + "...") > width:
        text = text[:-1]
    return text + "..."
