"""One step for people: what the policy saw, small, with what it did drawn in and said in words."""

import io

from PIL import Image

from agents.describing import describe_all
from ops.pictures.click_mark import Place, draw_click, draw_path, pointed_at
from schemas.messages import Observation, StepRequest
from trainer.pictures import opened
from trainer.tracking import ShownStep

_MOST_PIXELS = 640
"""The longer side."""
_LEAST_PIXELS = 320
_QUALITY = 80


def show_step(number: int, seen: Observation, step: StepRequest) -> ShownStep:
    """`number`: of the step, from 1."""
    return ShownStep(
        action=describe_all(step.actions), response=step.response, parsed=step.parsed, screenshot=_drawn(number, seen, step)
    )


def _drawn(number: int, seen: Observation, step: StepRequest) -> bytes:
    """A JPEG; empty when the screenshot cannot be read."""
    try:
        screenshot = opened(seen.screenshot.data)
    except ValueError:
        return b""
    longest = max(screenshot.size)
    scale = min(1.0, _MOST_PIXELS / longest) if longest > _LEAST_PIXELS else _LEAST_PIXELS / longest
    size = (max(1, round(screenshot.width * scale)), max(1, round(screenshot.height * scale)))
    screenshot = screenshot.resize(size, Image.Resampling.LANCZOS)
    action = step.action
    start = _pixels(screenshot, seen, action.point, action.element)
    end = _pixels(screenshot, seen, action.end_point, action.end_element)
    if start is not None and end is not None:
        draw_path(screenshot, start, end)
    if start is not None:
        draw_click(screenshot, *start, number)
    encoded = io.BytesIO()
    screenshot.save(encoded, "JPEG", quality=_QUALITY)
    return encoded.getvalue()


def _pixels(screenshot: Image.Image, seen: Observation, point: Place | None, element: int | None) -> Place | None:
    """Where in the screenshot that is."""
    place = pointed_at(seen, point, element)
    return None if place is None else (place[0] / 1000 * screenshot.width, place[1] / 1000 * screenshot.height)
