"""Shows how far judging again has come."""

import time
from contextlib import AbstractAsyncContextManager

from bus.presence import Status
from ops.analysis.rejudging.draining import Remaining
from ops.console.terminal import Console
from ops.monitor.dashboard import dashboard
from ops.monitor.view import Progress, RoleRow, View


def shown(remaining: Remaining, status: Status) -> AbstractAsyncContextManager[None]:
    """Shows both on stderr, as they change while the context is open."""
    began = time.monotonic()
    return dashboard(lambda: view(remaining, status, time.monotonic() - began), Console(stderr=True))


def view(remaining: Remaining, status: Status, elapsed_s: float) -> View:
    """While anything is left, what the judge waits for: a pause at its role, anything else beside the progress."""
    errors, left = int(status.metrics.get("error", 0)), remaining.left > 0
    is_paused = status.state == "paused"
    told = (f"{errors} errors" if errors else "", status.note if left and not is_paused else "")
    return View(
        title="Millrace judging again",
        phases=("judging",),
        phase=1 if remaining.total and not left else 0,
        elapsed_s=elapsed_s,
        roles=(RoleRow(worker=status.worker, state=status.state, note=status.note if is_paused else ""),) if left else (),
        progress=(Progress(label="judged", done=remaining.done, total=remaining.total, note="; ".join(filter(None, told))),),
    )
