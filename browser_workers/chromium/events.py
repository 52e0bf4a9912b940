"""Listens to Playwright's events.

Invariant: what a listener raises ends here. Playwright would raise it out of whichever call is sent next, which may be that of
another episode.
"""

from collections.abc import Callable
from typing import Any

import structlog

from bus.fault import Fault

_log = structlog.get_logger()


def listen(
    emitter: Any,
    event: str,
    listener: Callable[[Any], object],
    failed: Callable[[str], object] = lambda reason: None,
) -> Callable[[], None]:
    """Calls `listener` with what comes with each `event`, if anything does; returns what ends that.

    What it raises is logged, and `failed` is told it in words.
    """

    def heard(given: Any = None) -> None:
        try:
            listener(given)
        except Exception as error:  # noqa: BLE001 - a bulkhead
            fault = Fault.of(error)
            _log.error("listener_failed", of=event, error=fault.error, place=fault.place, exc_info=error)
            failed(f"unexpected {fault}")

    emitter.on(event, heard)
    return lambda: emitter.remove_listener(event, heard)
