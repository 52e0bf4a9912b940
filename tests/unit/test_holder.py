"""Whether a policy worker that has a step in hand still has it."""

import pytest

from browser_workers.holder import Holder
from bus.ports import Offered
from schemas.ids import WorkerId

TAKEN, DECLINED, ABSENT, SILENT = Offered.TAKEN, Offered.DECLINED, Offered.ABSENT, Offered.SILENT
PATIENCE_S = 3.0


def kept(*said: Offered, at_s: float = 0.5) -> list[bool]:
    """What is thought of a holder, asked every `at_s` seconds."""
    holder = Holder(worker=WorkerId("p1"), since=100.0, patience_s=PATIENCE_S)
    return [holder.keeps(each, 100.0 + at_s * number) for number, each in enumerate(said, start=1)]


@pytest.mark.parametrize(
    ("said", "keeps"),
    [
        ([TAKEN] * 100, [True] * 100),
        ([DECLINED], [False]),
        ([ABSENT, ABSENT], [True, False]),
        ([ABSENT, TAKEN, ABSENT, TAKEN], [True] * 4),
        ([ABSENT, SILENT, ABSENT], [True] * 3),
        ([SILENT] * 6, [True] * 5 + [False]),
        ([SILENT] * 5 + [TAKEN] + [SILENT] * 6, [True] * 11 + [False]),
        ([SILENT, DECLINED], [True, False]),
    ],
    ids=["busy", "given up", "gone", "reconnected", "gone for a moment", "silent", "slow", "no longer"],
)
def test_who_keeps_a_step(said: list[Offered], keeps: list[bool]) -> None:
    assert kept(*said) == keeps


def test_a_process_that_is_gone_is_known_within_a_second() -> None:
    holder = Holder(worker=WorkerId("p1"), since=0.0, patience_s=PATIENCE_S)
    now = holder.pause_s
    while holder.keeps(ABSENT, now):
        now += holder.pause_s
    assert now <= 1.0


def test_a_worker_that_has_a_step_for_ever_loses_it() -> None:
    assert kept(TAKEN, TAKEN, TAKEN, at_s=120.0) == [True, True, False]
