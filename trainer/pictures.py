"""Opens screenshots that others have stored."""

import io

from PIL import Image, UnidentifiedImageError


def opened(data: bytes) -> Image.Image:
    """A screenshot in RGB. Raises `ValueError` for what is no picture, a damaged one, or one too large to be looked at."""
    try:
        return Image.open(io.BytesIO(data)).convert("RGB")
    except UnidentifiedImageError as error:
        raise ValueError("the screenshot is no picture") from error
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"the screenshot cannot be opened: {error}") from error
