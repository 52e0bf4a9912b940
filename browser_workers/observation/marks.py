"""Draws the marks of a set-of-marks observation into a screenshot: a frame around each element and its number beside it.

Invariant: equal screenshots with equal elements give equal bytes.
"""

import io
from collections.abc import Sequence
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

from browser_workers.observation.mark_labels import place_labels
from schemas.messages import Element, Screenshot

Colour = tuple[int, int, int]

COLOURS: tuple[Colour, ...] = (
    (200, 16, 46),
    (0, 87, 184),
    (0, 115, 54),
    (123, 31, 162),
    (176, 72, 0),
    (0, 105, 120),
    (194, 24, 120),
    (62, 57, 53),
)
"""Each dark enough for white figures on it (contrast 4.5 and more), and neighbours unlike each other."""
_WHITE: Colour = (255, 255, 255)
_FONT_SIZE = 14
_SMALL_FONT_SIZE = 12
_MANY = 80
"""Marks, above which labels are small: they would cover much of the page."""
_PADDING = (4, 2)
_LINE = 2
_FAST_PNG = 1
"""Compression level: three quarters of the time of the default are saved for a quarter more bytes."""


def colour_of(number: int) -> Colour:
    return COLOURS[(number - 1) % len(COLOURS)]


def draw_marks(
    screenshot: Screenshot, elements: Sequence[Element], *, screenshot_format: str, jpeg_quality: int
) -> Screenshot:
    """The screenshot with its marks, encoded as `screenshot_format`."""
    with Image.open(io.BytesIO(screenshot.data)) as opened:
        image = opened.convert("RGB")
    draw = ImageDraw.Draw(image)
    for element in elements:
        _frame(draw, element)
    font_size = _FONT_SIZE if len(elements) <= _MANY else _SMALL_FONT_SIZE
    labels = [_label(element.id, font_size) for element in elements]
    places = place_labels([element.box for element in elements], [label.size for label in labels], image.size)
    # Numbers come last, so that no frame crosses one.
    for label, (x, y, _, _) in zip(labels, places, strict=True):
        image.paste(label, (x, y))
    return _encoded(image, screenshot_format, jpeg_quality)


def _frame(draw: ImageDraw.ImageDraw, element: Element) -> None:
    x, y, width, height = element.box
    outer = (x - 1, y - 1, x + width, y + height)
    # White on the outside: the frame stands out on a ground of its own colour too.
    draw.rectangle((outer[0] - 1, outer[1] - 1, outer[2] + 1, outer[3] + 1), outline=_WHITE, width=1)
    draw.rectangle(outer, outline=colour_of(element.id), width=_LINE)


@lru_cache(maxsize=2)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size=size)


@lru_cache(maxsize=1024)
def _label(number: int, font_size: int) -> Image.Image:
    font = _font(font_size)
    left, _, right, _ = font.getbbox(str(number))
    width, height = round(right - left) + 2 * _PADDING[0], font_size + 2 * _PADDING[1] - 1
    label = Image.new("RGB", (width, height), colour_of(number))
    draw = ImageDraw.Draw(label)
    draw.rectangle((0, 0, width - 1, height - 1), outline=_WHITE, width=1)
    draw.text((_PADDING[0] - left, height / 2), str(number), fill=_WHITE, font=font, anchor="lm")
    return label


def _encoded(image: Image.Image, screenshot_format: str, jpeg_quality: int) -> Screenshot:
    data = io.BytesIO()
    if screenshot_format == "jpeg":
        image.save(data, format="JPEG", quality=jpeg_quality)
    else:
        image.save(data, format=screenshot_format.upper(), compress_level=_FAST_PNG)
    return Screenshot(data=data.getvalue(), media_type=f"image/{screenshot_format}", width=image.width, height=image.height)
