"""Tells workers that wait for work that the run is over: they stay, since a feeder may be told to go on."""

import anyio
import structlog

from bus.context import WorkerContext
from schemas.errors import BusError
from schemas.messages import FeederMemory, Role

WAITING = (Role.BROWSER, Role.POLICY, Role.JUDGE)
"""Roles whose workers end only when they are told to."""
LOOK_S = 20.0
_log = structlog.get_logger()


async def tell_when_over(context: WorkerContext, *, look_s: float = LOOK_S) -> None:
    """Says in the log and in heartbeats that the run is over, and that it goes on; never ends."""
    status = context.status
    while True:
        over = await _is_over(context)
        if over is not None and over != status.run_over:
            status.run_over = over
            if over:
                _log.info("run_over", say="nothing is left to do; end this worker with millrace drain, or Ctrl-C")
            else:
                _log.info("run_goes_on")
        await anyio.sleep(look_s)


async def _is_over(context: WorkerContext) -> bool | None:
    """What the feeder wrote last; None: that cannot be read now."""
    names = context.subjects
    try:
        record = await context.bus.last(names.feeding, names.feeder_memory)
    except BusError:
        return None
    return isinstance(record.message, FeederMemory) and record.message.finished if record is not None else False
