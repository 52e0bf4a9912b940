"""For tests of what comes in the end: on a busy machine a page may take any time."""

import pytest

from tests.deadlines import HANGS_S

_CAPS = (
    "chromium.capture._CAPTURE_S",
    "chromium.listeners._PATIENCE_S",
    "chromium.page_events._APPEARS_S",
    "chromium.tab.LOAD_CAP_S",
    "chromium.tab._SETTLE_CAP_S",
    "chromium.page_stability._TRAFFIC_CAP_S",
    "chromium.windows._APPEARS_S",
    "chromium.windows._LISTING_S",
    "chromium.windows._WINDOW_S",
    "play._FINAL_STATE_S",
)


def wait_for_pages(patch: pytest.MonkeyPatch) -> None:
    """A page is waited for until it has come to rest and was seen, and what it announced until it is there."""
    for cap in _CAPS:
        patch.setattr(f"browser_workers.{cap}", HANGS_S)
