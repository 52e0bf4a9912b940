"""How far a queue has come, and which rubrics a run may take on."""

import io
from dataclasses import replace

import pytest
from rich.console import Console
from rich.text import Text

from bus.presence import Status
from judges.spending import Spending
from ops.analysis.rejudging import progress
from ops.analysis.rejudging.admission import require_admissible, with_rubric
from ops.analysis.rejudging.display import report_table, summary
from ops.analysis.rejudging.draining import Remaining
from ops.analysis.rejudging.report import Rejudged
from ops.monitor.dashboard import render, summary_line
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import Role


def test_what_joins_the_queue_counts_to_the_total() -> None:
    remaining = Remaining()
    seen = []
    for left in (5, 3, 4, 0, 0, 2, 0):
        remaining.note(left)
        seen.append((remaining.done, remaining.total))
    assert seen == [(0, 5), (2, 5), (2, 6), (6, 6), (6, 6), (6, 8), (8, 8)]


def test_what_a_run_is_trained_by_stays_the_first() -> None:
    config = Config()
    again = with_rubric(config, "rubric_v1")
    assert again.bus_config.rubrics == ("environment_v1", "rubric_v1")
    assert with_rubric(again, "rubric_v1") == again
    assert replace(again, bus_config=config.bus_config) == config


def test_servers_of_others_are_asked_for_first() -> None:
    elsewhere = BusConfig(url="nats://localhost:4222", rubrics=("a", "b"))
    require_admissible(elsewhere, "b")
    require_admissible(BusConfig(rubrics=("a",)), "c")
    with pytest.raises(ConfigurationError, match=r"bus_config.rubrics=\[a,b,c\].*millrace cluster.*millrace streams"):
        require_admissible(elsewhere, "c")


_PAUSED = "2,000 calls were made: raise judge_config.max_calls (2,000) and start the judges again; nothing is lost"


def _status(num_errors: int = 0, note: str = "") -> Status:
    status = Status(Role.JUDGE, WorkerId("rejudge-1"))
    status.metrics, status.note, status.state = {"error": float(num_errors)}, note, "paused" if note else "working"
    return status


def test_what_is_waited_for_is_told_while_something_is_left() -> None:
    def told(remaining: Remaining, status: Status) -> str:
        return summary_line(progress.view(remaining, status, 1.0))

    assert (
        told(Remaining(left=2, total=5), _status(1, _PAUSED))
        == f"0:01 judging | judged 60 % (1 errors) | rejudge-1 paused: {_PAUSED}"
    )
    assert told(Remaining(left=0, total=5), _status(1, _PAUSED)) == "0:01 done | judged 100 % (1 errors)"
    assert told(Remaining(left=2, total=5), _status()) == "0:01 judging | judged 60 %"
    assert told(Remaining(), _status()) == "0:01 judging | judged 0"
    waiting = _status()
    waiting.note = "m at localhost is away"
    assert told(Remaining(left=2, total=5), waiting) == "0:01 judging | judged 60 % (m at localhost is away)"


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_pause_is_told_in_full(width: int) -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=width)
    console.print(render(progress.view(Remaining(left=12, total=60), _status(2, _PAUSED), 1.0), width, 30))
    _, _, bar, *rest = (Text.from_ansi(line).plain for line in written.getvalue().splitlines())
    assert "━" in bar
    assert width < 80 or "48 of 60  2 errors" in bar
    assert f"rejudge-1 is paused: {_PAUSED}" in " ".join(line.strip() for line in rest)


def _rejudged(*, unjudged: tuple[str, ...] = (), **verdicts: int) -> Rejudged:
    return Rejudged(
        rubric="rubric_v1-large",
        against="environment_v1",
        num_episodes=sum(verdicts.values()),
        verdicts=verdicts,
        confusion={"success": verdicts},
        unjudged=tuple(map(EpisodeId, unjudged)),
        spending=Spending(num_judgements=1, num_calls=2_000_000, prompt_tokens=2**40, cached_tokens=2**39, cost=1234.5),
        elapsed_s=1.0,
    )


def test_errors_are_told_apart_from_a_full_success() -> None:
    assert summary(_rejudged(success=3)).plain == "every trajectory has a judgement by rubric_v1-large"
    told = summary(_rejudged(success=3, error=2)).plain
    assert "2 of them an error" in told
    assert "millrace watch judgements --no-follow --rubric rubric_v1-large --verdict error" in told
    assert summary(_rejudged(success=3, unjudged=("a", "b"))).plain == "no judgement by rubric_v1-large: a, b"


def test_the_report_fits_a_terminal_of_80_columns() -> None:
    written = io.StringIO()
    Console(file=written, width=200).print(report_table(_rejudged(success=1, failure=1, excluded=1, error=1, unjudged=("a",))))
    assert max(len(line.rstrip()) for line in written.getvalue().splitlines()) <= 80
