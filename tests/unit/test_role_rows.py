"""What a display says of each role: what a running worker says itself, else why it last ended."""

import time
from dataclasses import replace

import msgspec

from ops.monitor.role_rows import role_rows
from ops.processes.supervisor import RoleState, RoleStatus
from schemas.ids import WorkerId
from schemas.messages import Heartbeat, Role

NOTE = "all 2 training sites are blocked until 2026-01-01 12:00:00 UTC"
FEEDER = WorkerId("feeder-1")


def test_a_worker_that_waits_says_what_for() -> None:
    beat = Heartbeat(role=Role.FEEDER, worker=FEEDER, state="waiting", at=0.0, note=NOTE)
    status = RoleStatus(role=Role.FEEDER, name=FEEDER, note="ended by signal 9", num_restarts=1)
    [row] = role_rows({FEEDER: status}, {FEEDER: beat})
    assert (row.state, row.note, row.num_restarts) == ("waiting", NOTE, 1)
    [row] = role_rows({FEEDER: replace(status, state=RoleState.FATAL)}, {FEEDER: beat})
    assert (row.state, row.note) == ("fatal", "ended by signal 9"), "what it said last is over"
    [row] = role_rows({FEEDER: status}, {})
    assert row.note == "ended by signal 9"


def test_a_worker_that_was_started_by_hand_says_what_for_too() -> None:
    judge = WorkerId("judge-2")
    beat = Heartbeat(role=Role.JUDGE, worker=judge, state="paused", at=time.time(), note="raise judge_config.max_calls")
    [row] = role_rows({}, {judge: beat})
    assert (row.worker, row.state, row.note) == (judge, "paused", "raise judge_config.max_calls")
    [row] = role_rows({}, {judge: msgspec.structs.replace(beat, note="")})
    assert row.note == "started by hand"
