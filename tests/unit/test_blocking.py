"""How often sites keep the agent out, by value, and what monitor and report show of it."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from bus.ports import Record
from ops.analysis.report.episode import ReportedEpisode
from ops.analysis.report.figures import as_json
from ops.analysis.report.report import Report
from ops.analysis.report.sections import block_sections
from ops.analysis.report.tables import shown
from ops.monitor.metrics import Exposition
from ops.monitor.snapshot import sections
from ops.monitor.state import MonitorState
from ops.statistics.blocking import DIRECT, JUDGE, OTHER, Blocking
from schemas.config import Config
from schemas.messages import Blockage, Judgement, Outcome, Trajectory
from schemas.monitor_config import MonitorConfig
from tests import builders

ONE, OTHER_WAY = "http://p1.example:3128", "http://p2.example:3128"
MET = Blockage(site="shop.example", sign="its check of visitors is shown", provider="cloudflare", attempt=1, egress=ONE)


def played(
    outcome: Outcome = Outcome.ANSWERED, *met: Blockage, site: str = "shop.example", egress: str = "", attempt: int = 1
) -> Trajectory:
    task = replace(builders.task(), website=f"https://www.{site}/")
    return replace(builders.trajectory(task, outcome=outcome, attempt=attempt), egress=egress, blockages=met)


EPISODES: Sequence[tuple[Trajectory, bool]] = (
    (played(egress=ONE), False),
    (played(Outcome.BLOCKED, MET, egress=ONE), True),
    (played(Outcome.ANSWERED, MET, egress=OTHER_WAY, attempt=2), False),
    (played(Outcome.ANSWERED, site="news.example"), True),
    (played(Outcome.ANSWERED, replace(MET, site="other.example", elsewhere=True), replace(MET, lifted=True)), False),
)
"""And whether a judge says that it was blocked, as judges say of all that ended so."""


def counted(blocking: Blocking) -> Blocking:
    for trajectory, ruled_blocked in EPISODES:
        blocking.add(trajectory, ruled_blocked=ruled_blocked)
    return blocking


def test_every_attempt_is_a_visit_and_counts_once() -> None:
    found = counted(Blocking())
    assert (found.total.number, found.total.num_blocked) == (6, 3)
    assert {site: (seen.number, seen.num_blocked) for site, seen in found.by_site.items()} == {
        "shop.example": (5, 2),
        "news.example": (1, 1),
    }
    assert {egress: (seen.number, seen.num_blocked) for egress, seen in found.by_egress.items()} == {
        ONE: (3, 2),
        OTHER_WAY: (1, 0),
        DIRECT: (2, 1),
    }
    assert found.by_provider == {"cloudflare": 2, JUDGE: 1}
    assert (found.num_elsewhere, found.num_lifted) == (1, 1)
    assert list(found.most_blocked(1)) == ["shop.example"]


def test_labels_are_bounded() -> None:
    found = Blocking(most=2)
    for number in range(9):
        found.add(played(site=f"s{number}.example", egress=f"http://p{number}.example:1"))
    assert {site: seen.number for site, seen in found.by_site.items()} == {"s0.example": 1, "s1.example": 1, OTHER: 7}
    assert len(found.by_egress) == 3


def judgements() -> list[Judgement]:
    return [
        replace(builders.judgement(trajectory, None if blocked else 1.0), blocked=blocked) for trajectory, blocked in EPISODES
    ]


@pytest.fixture
def state() -> MonitorState:
    state = MonitorState(MonitorConfig(), began_at=0.0)
    for seq, judgement in enumerate(judgements(), 1):
        state.stored(Record("test_JUDGED", "s", seq, judgement, time_s=1.0), 2.0)
    return state


def test_the_monitor_shows_it_by_site_egress_and_provider(state: MonitorState) -> None:
    assert sections(state, (), Config(), 3.0)["blocking"] == {
        "visits": [6, 3],
        "sites": {"shop.example": [5, 2], "news.example": [1, 1]},
        "egresses": {ONE: [3, 2], OTHER_WAY: [1, 0], DIRECT: [2, 1]},
        "providers": {"cloudflare": 2, JUDGE: 1},
    }


def test_prometheus_has_no_site_among_its_labels(state: MonitorState) -> None:
    page = Exposition("test", lambda: (state, ())).page().decode()
    lines = set(page.splitlines())
    assert {
        f'millrace_visits_total{{egress="{ONE}",run="test"}} 3.0',
        f'millrace_blocked_visits_total{{egress="{ONE}",run="test"}} 2.0',
        'millrace_blocks_total{provider="cloudflare",run="test"} 2.0',
        'millrace_sites_with_blocks{run="test"} 2.0',
    } <= lines
    assert "shop.example" not in page


def test_the_report_has_tables_of_it() -> None:
    report = Report(source="here", run="test", rubric=builders.RUBRIC)
    assert block_sections(report, top=9) == ()
    for judgement in judgements():
        report.add_reported(ReportedEpisode(judgement.trajectory, judgement, (judgement,)))
    (section,) = block_sections(report, top=9)
    sites, egresses, providers = (
        [[cell if isinstance(cell, str) else shown(cell) for cell in row] for row in table.rows] for table in section.tables
    )
    assert sites[0] == ["shop.example", "5", "40.0 % (11.8–76.9, 2 of 5)"]
    assert [row[0] for row in egresses] == [DIRECT, ONE, OTHER_WAY]
    assert [row[0] for row in providers] == ["cloudflare", JUDGE]
    assert section.note.endswith("Blocks met on other sites than the episode's own: 1. Blocks lifted: 1.")
    assert as_json(report)["blocking"]["egresses"][ONE]["count"] == 2
