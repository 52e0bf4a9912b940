"""From actions to pixels and addresses: pure functions."""

from urllib.parse import urlsplit

from schemas.messages import Action

Point = tuple[int, int]
"""x, y in viewport pixels."""

MAX_WAIT_S = 30.0
MAX_LINES = 1000
_GRID = 1000


def pixel(size: int, n: float) -> int:
    """The pixel that `n` on the 0-1000 grid stands for in a viewport of `size` pixels."""
    return max(0, min(round(size * n / _GRID), size - 1))


def pixels(point: tuple[float, float], viewport: tuple[int, int]) -> Point | str:
    """The pixel at a point of the grid, or a sentence that says why there is none."""
    if not all(0 <= n <= _GRID for n in point):
        x, y = point
        return f"({x:g}, {y:g}) is outside the screenshot: coordinates go from 0 to {_GRID} in both directions"
    return pixel(viewport[0], point[0]), pixel(viewport[1], point[1])


def num_lines(action: Action) -> int:
    return max(1, min(action.num_lines, MAX_LINES))


def wait_s(action: Action) -> float:
    return max(0.0, min(action.seconds, MAX_WAIT_S))


def scroll_delta(direction: str, viewport: tuple[int, int], amount: float = 1.0) -> tuple[int, int] | str:
    """Pixels to the right and downwards that make `amount` of a page, or a sentence that says why there are none."""
    width, height = (round(side * amount) for side in viewport)
    deltas = {"up": (0, -height), "down": (0, height), "left": (-width, 0), "right": (width, 0)}
    return deltas.get(direction) or f"{direction[:60]!r} is no direction: write up, down, left or right"


def web_address(text: str) -> str:
    """A http(s) URL, with `https://` where no scheme is written; empty when the text names something else."""
    text = text.strip()
    if text.split() != [text]:
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
