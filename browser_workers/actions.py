"""From actions to pixels, keys and addresses: pure functions."""

from urllib.parse import urlsplit

from schemas.messages import Action

MAX_WAIT_S = 30.0
_GRID = 1000


def pixel(size: int, n: float) -> int:
    """The pixel that `n` on the 0-1000 grid stands for in a viewport of `size` pixels."""
    return max(0, min(round(size * n / _GRID), size - 1))


def point_of(action: Action, width: int, height: int) -> tuple[int, int] | None:
    if action.point is None:
        return None
    return pixel(width, action.point[0]), pixel(height, action.point[1])


def wait_s(action: Action) -> float:
    return max(0.0, min(action.seconds, MAX_WAIT_S))


def web_address(text: str) -> str:
    """A http(s) URL, with `https://` where no scheme is written; empty when the text names something else."""
    text = text.strip()
    if not text or any(character.isspace() for character in text):
        return ""
    if "://" not in text:
        scheme, _, rest = text.partition(":")
        if rest and not rest.split("/", 1)[0].isdigit() and "." not in scheme:
            return ""
        text = f"https://{text}"
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return text if parts.scheme in ("http", "https") and parts.hostname else ""
