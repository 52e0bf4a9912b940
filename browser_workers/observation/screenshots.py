"""Looks at encoded screenshots without decoding more than needed."""

import io

from PIL import Image

from schemas.messages import Screenshot

_BLANK_ABOVE = 250
_BYTES_A_PIXEL = 0.05
"""An even screenshot is far smaller than this; one that is larger shows something and is not decoded."""
_HEADER_BYTES = 2000


def is_blank(screenshot: Screenshot) -> bool:
    """Whether every pixel is nearly white."""
    if len(screenshot.data) > _HEADER_BYTES + _BYTES_A_PIXEL * screenshot.width * screenshot.height:
        return False
    with Image.open(io.BytesIO(screenshot.data)) as image:
        # JPEG decodes at an eighth of the size for a fraction of the work; other formats ignore it.
        image.draft("L", (screenshot.width // 8, screenshot.height // 8))
        return min(image.convert("L").tobytes()) > _BLANK_ABOVE
