"""Small sites for a real Chromium: their openings, places on them, and what their title says."""

from collections.abc import Mapping

from browser_workers.browser import Opening
from browser_workers.chromium.session import PlaywrightSession
from browser_workers.site import Documents
from schemas.browser_config import BrowserConfig
from schemas.messages import Action, ActionKind

ORIGIN = "http://pages.test"
SIZE = (400, 300)


def small(**changes: object) -> BrowserConfig:
    settings: Mapping[str, object] = {"viewport_width": SIZE[0], "viewport_height": SIZE[1], **changes}
    return BrowserConfig(**settings)  # type: ignore[arg-type]


def page(body: str, *, head: str = "") -> bytes:
    """A document whose title is `page`."""
    return f"<!doctype html><title>page</title>{head}<body style='margin:0'>{body}".encode()


def opening_of(body: str | bytes, **others: bytes) -> Opening:
    """A site of one document, and of others by name."""
    documents = {"/": body if isinstance(body, bytes) else page(body)}
    documents |= {f"/{name}": document for name, document in others.items()}
    return Opening(url=f"{ORIGIN}/", site=Documents(ORIGIN, documents), quiet_s=0.03)


def at(x: float, y: float) -> tuple[float, float]:
    """The point of the grid at these pixels."""
    return x / SIZE[0] * 1000, y / SIZE[1] * 1000


def click(x: float = 100, y: float = 100) -> Action:
    return Action(kind=ActionKind.CLICK, point=at(x, y))


def press(*keys: str) -> Action:
    return Action(kind=ActionKind.PRESS, keys=keys)


async def title(session: PlaywrightSession) -> str:
    return (await session.state()).title
