"""The mark that shows where a policy pointed."""

from PIL import Image, ImageDraw, ImageFont

from schemas.messages import Observation

Place = tuple[float, float]
CLICK, HALO = "#e0245e", "#ffffff"


def pointed_at(seen: Observation, point: Place | None, element: int | None) -> Place | None:
    """A point, or the middle of a numbered element, on the 0-1000 grid of the screenshot; None: neither is there."""
    if point is not None:
        return point
    box = next((found.box for found in seen.elements if found.id == element), None)
    if box is None:
        return None
    x, y, width, height = box
    return (x + width / 2) / seen.screenshot.width * 1000, (y + height / 2) / seen.screenshot.height * 1000


def draw_click(screenshot: Image.Image, x: float, y: float, number: int) -> None:
    """A numbered target at a point in pixels."""
    draw = ImageDraw.Draw(screenshot)
    # Twice, so that the mark stands out on any page: a broad light line below the coloured one.
    for colour, thick in ((HALO, 6), (CLICK, 3)):
        draw.ellipse((x - 15, y - 15, x + 15, y + 15), outline=colour, width=thick)
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            draw.line((x + 9 * dx, y + 9 * dy, x + 24 * dx, y + 24 * dy), fill=colour, width=thick)
    # The number stands beside the mark, on the side that has room.
    side = 1 if x < screenshot.width - 50 else -1
    below = 1 if y < screenshot.height - 50 else -1
    cx, cy = x + 26 * side, y + 26 * below
    draw.ellipse((cx - 12, cy - 12, cx + 12, cy + 12), fill=CLICK, outline=HALO, width=2)
    draw.text((cx, cy), str(number), HALO, ImageFont.load_default(15), anchor="mm")


def draw_path(screenshot: Image.Image, start: Place, end: Place) -> None:
    """A line with a point at its end, in pixels: where a drag went."""
    draw = ImageDraw.Draw(screenshot)
    for colour, thick, radius in ((HALO, 7, 9), (CLICK, 3, 6)):
        draw.line((start, end), fill=colour, width=thick)
        draw.ellipse((end[0] - radius, end[1] - radius, end[0] + radius, end[1] + radius), fill=colour)
