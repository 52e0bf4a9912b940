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
    """What the judge waits for counts while anything is left."""
    errors = int(status.metrics.get("error", 0))
    judge = RoleRow(worker=status.worker, state=status.state, note=status.note) if remaining.left else None
    return View(
        title="Millrace judging again",
        phases=("judging",),
        phase=0 if remaining.left else 1,
        elapsed_s=elapsed_s,
        roles=() if judge is None else (judge,),
        progress=(
            Progress(label="judged", done=remaining.done, total=remaining.total, note=f"{errors} errors" if errors else ""),
        ),
    )
