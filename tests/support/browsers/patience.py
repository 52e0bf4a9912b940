"""For tests of what comes in the end: on a busy machine a page may take any time."""

import pytest

from tests.deadlines import HANGS_S

_CAPS = (
    "capture._CAPTURE_S",
    "listeners._PATIENCE_S",
    "page_events._APPEARS_S",
    "tab.LOAD_CAP_S",
    "tab._SETTLE_CAP_S",
    "page_stability._TRAFFIC_CAP_S",
    "windows._APPEARS_S",
    "windows._LISTING_S",
    "windows._WINDOW_S",
)


def wait_for_pages(patch: pytest.MonkeyPatch) -> None:
    """A page is waited for until it has come to rest and was seen, and what it announced until it is there."""
    for cap in _CAPS:
        patch.setattr(f"browser_workers.chromium.{cap}", HANGS_S)
