"""A worker's wall clock is set wrong from outside, and nothing else is."""

import time
from itertools import islice
from pathlib import Path

from ops.audit.waits import Wait, Waiting
from ops.drills.bounds import PATIENCE_S, bound_s
from ops.drills.faults import Durations, FaultKind, Injected, faults
from ops.simulation.clock import shift_clock, shift_file, shifted_clock

DAY_S = 86_400.0


def test_a_process_reads_what_its_file_says_while_it_runs(tmp_path: Path) -> None:
    true_s = time.time()
    with shifted_clock(tmp_path, "judge-1"):
        assert abs(time.time() - true_s) < DAY_S
        shift_clock(tmp_path, "judge-2", DAY_S * 5)
        assert abs(time.time() - true_s) < DAY_S, "another worker's"
        shift_clock(tmp_path, "judge-1", DAY_S * 5)
        assert time.time() - true_s > DAY_S * 4
        assert time.time_ns() - true_s * 1e9 > DAY_S * 4e9
        shift_clock(tmp_path, "judge-1", -DAY_S * 5)
        assert time.time() - true_s < -DAY_S * 4, "it goes backwards"
    assert abs(time.time() - true_s) < DAY_S
    with shifted_clock(tmp_path, "judge-1"):
        assert time.time() - true_s < -DAY_S * 4, "and stays there when the worker is started again"
    assert shift_file(tmp_path, "judge-1").stat().st_size == 8


def test_clocks_are_off_by_a_second_or_by_days_either_way() -> None:
    drawn = faults(seed=0, mean_interval_s=1.0, victims={FaultKind.CLOCK: ["judge-1"]}, durations=Durations())
    shifts = [fault.shift_s for fault in islice(drawn, 400)]
    assert min(shifts) < -DAY_S
    assert max(shifts) > DAY_S
    assert any(abs(shift) < 60.0 for shift in shifts)


def test_a_wrong_clock_explains_no_wait() -> None:
    wait = Wait(what=Waiting.ANSWER, episode="e", began_s=1000.0, ended_s=1020.0)
    wrong = Injected(at=1001.0, kind=FaultKind.CLOCK, victim="policy-1", pid=1, duration_s=0.0, shift_s=-DAY_S)
    assert bound_s(wait, [wrong], lease_s=5.0) == PATIENCE_S
    away = Injected(at=1001.0, kind=FaultKind.AGE, victim="policy", pid=1, duration_s=9.0)
    assert bound_s(wait, [away], lease_s=5.0) > PATIENCE_S + 9.0
