"""One step for people: what the policy saw, small, with what it did drawn in and said in words."""

import io

from PIL import Image, UnidentifiedImageError

from agents.describing import describe
from ops.roles.click_mark import draw_click, draw_path
from schemas.messages import Observation, StepRequest
from trainer.tracking import ShownStep

_MOST_PIXELS = 640
"""The longer side."""
_LEAST_PIXELS = 320
_QUALITY = 80


def show_step(number: int, seen: Observation, step: StepRequest) -> ShownStep:
    """`number`: of the step, from 1."""
    return ShownStep(
        action=describe(step.action), response=step.response, parsed=step.parsed, picture=_drawn(number, seen, step)
    )


def _drawn(number: int, seen: Observation, step: StepRequest) -> bytes:
    """A JPEG; empty when the picture cannot be read."""
    try:
        with Image.open(io.BytesIO(seen.picture.data)) as opened:
            picture = opened.convert("RGB")
    except (UnidentifiedImageError, OSError):
        return b""
    longest = max(picture.size)
    scale = min(1.0, _MOST_PIXELS / longest) if longest > _LEAST_PIXELS else _LEAST_PIXELS / longest
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    picture = picture.resize(size, Image.Resampling.LANCZOS)
    action = step.action
    start = _pixels(picture, seen, action.point, action.element)
    end = _pixels(picture, seen, action.end_point, action.end_element)
    if start is not None and end is not None:
        draw_path(picture, start, end)
    if start is not None:
        draw_click(picture, *start, number)
    encoded = io.BytesIO()
    picture.save(encoded, "JPEG", quality=_QUALITY)
    return encoded.getvalue()


def _pixels(
    picture: Image.Image, seen: Observation, point: tuple[float, float] | None, element: int | None
) -> tuple[float, float] | None:
    """Where in the picture a point of the 0-1000 grid, or the middle of a numbered element, lies."""
    if point is not None:
        return point[0] / 1000 * picture.width, point[1] / 1000 * picture.height
    box = next((found.box for found in seen.elements if found.id == element), None)
    if box is None:
        return None
    x, y, width, height = box
    return (
        (x + width / 2) / seen.picture.width * picture.width,
        (y + height / 2) / seen.picture.height * picture.height,
    )
