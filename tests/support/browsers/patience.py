"""For tests of what comes in the end: on a busy machine a page may take any time."""

import pytest

from browser_workers.chromium import evaluation
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
    """A page is waited for until it has come to rest and was seen, and what it announced until it is there; it is watched."""
    for cap in _CAPS:
        patch.setattr(f"browser_workers.{cap}", HANGS_S)
    watching = f"WATCH_MS = {1000 * HANGS_S:.0f};"
    patch.setattr(evaluation, "_SCRIPT", evaluation._SCRIPT.replace("WATCH_MS = 12000;", watching))
    assert watching in evaluation._SCRIPT
