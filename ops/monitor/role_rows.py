"""The lines of a display that say how each role stands: what the supervisor knows, and what heartbeats add."""

import time
from collections.abc import Mapping

from ops.monitor.view import RoleRow
from ops.processes.supervisor import RoleState, RoleStatus
from schemas.ids import WorkerId
from schemas.messages import Heartbeat

_FRESH_S = 10.0


def role_rows(statuses: Mapping[str, RoleStatus], heartbeats: Mapping[WorkerId, Heartbeat]) -> tuple[RoleRow, ...]:
    """Supervised roles first, then workers that somebody started by hand."""
    heard = {str(worker): beat for worker, beat in heartbeats.items()}
    rows: list[RoleRow] = []
    for name, status in statuses.items():
        beat = heard.pop(name, None)
        says = beat if status.state is RoleState.RUNNING else None
        state = says.state if says else status.state.value
        note = (says.note if says else "") or status.note
        rows.append(RoleRow(worker=name, state=state, note=note, num_restarts=status.num_restarts))
    now = time.time()
    by_hand = [(worker, beat) for worker, beat in heard.items() if now - beat.at < _FRESH_S]
    rows.extend(RoleRow(worker=worker, state=beat.state, note=beat.note or "started by hand") for worker, beat in by_hand)
    return tuple(rows)
