"""A backend that fails: nobody notices but the log, and everything arrives once it works again."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bus.retry import Backoff
from tests.deadlines import HANGS_S
from trainer.tracking import Row, ShownEpisode
from trainer.tracking.follower import AGAIN, Follower
from trainer.tracking.metrics_file import MetricsFile


class Recorder:
    """A backend that refuses the first `num_failures` rows."""

    def __init__(self, num_failures: int = 0) -> None:
        self.num_failures = num_failures
        self.rows: list[int] = []
        self.shown: list[int] = []
        self.opened_at: list[int] = []
        self.refused = threading.Event()
        self.arrived = threading.Event()

    def open(self, next_version: int) -> "Recorder":
        self.opened_at.append(next_version)
        return self

    def log(self, row: Row) -> None:
        if self.num_failures:
            self.num_failures -= 1
            self.refused.set()
            raise ConnectionError("the network is away")
        self.rows.append(row.version)
        self.arrived.set()

    def show(self, version: int, episodes: Sequence[ShownEpisode]) -> None:
        self.shown.append(version)

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class AtOnce(Backoff):
    """Notes what it is asked for."""

    asked: list[int] = field(default_factory=list)

    def pause_s(self, num_tried: int) -> float:
        self.asked.append(num_tried)
        return 0.0


def follow(folder: Path, backend: Recorder, *, again: Backoff = AGAIN) -> Follower:
    follower = Follower("recorder", backend.open, metrics=folder / "metrics.jsonl", position=folder / "position", again=again)
    follower.wake()
    return follower


def test_rows_arrive_once_over_restarts(tmp_path: Path) -> None:
    metrics, backend = MetricsFile(tmp_path / "metrics.jsonl"), Recorder()
    for version in (1, 2, 3):
        follower = follow(tmp_path, backend)
        metrics.append(Row(version, {"loss": 1.0}))
        follower.wake()
        follower.close(HANGS_S)
    assert backend.rows == [1, 2, 3]
    assert backend.opened_at == [1, 2, 3], "each time with what is there already"


def test_a_failure_is_said_once_and_tried_again(tmp_path: Path) -> None:
    metrics, backend = MetricsFile(tmp_path / "metrics.jsonl"), Recorder(num_failures=3)
    metrics.append(Row(1, {"loss": 1.0}))
    with capture_logs() as logs:
        follower = follow(tmp_path, backend, again=AtOnce(0.0, 0.0))
        follower.wake((1, ()))
        assert backend.arrived.wait(HANGS_S)
        follower.close(HANGS_S)
    assert backend.rows == [1]
    assert backend.shown == [1]
    assert [entry["event"] for entry in logs] == ["tracking_failed", "tracking_recovered"]
    assert "the network is away" in logs[0]["error"]


def test_a_backend_that_goes_on_failing_is_tried_ever_more_rarely(tmp_path: Path) -> None:
    metrics, backend, again = MetricsFile(tmp_path / "metrics.jsonl"), Recorder(num_failures=3), AtOnce(0.0, 0.0)
    metrics.append(Row(1, {"loss": 1.0}))
    follower = follow(tmp_path, backend, again=again)
    assert backend.arrived.wait(HANGS_S)
    follower.close(HANGS_S)
    assert again.asked == [1, 2, 3]
    assert [AGAIN.pause_s(tried) for tried in (1, 2, 100)] == [15.0, 30.0, 3600.0]


def test_rows_that_were_taken_out_are_delivered_when_they_come_again(tmp_path: Path) -> None:
    metrics, backend = MetricsFile(tmp_path / "metrics.jsonl"), Recorder()
    for version in (1, 2, 3):
        metrics.append(Row(version, {"loss": 1.0}))
    metrics.append(Row(1, {"eval/success": 1.0}))
    follow(tmp_path, backend).close(HANGS_S)
    follower = Follower("recorder", backend.open, metrics=tmp_path / "metrics.jsonl", position=tmp_path / "position")
    follower.move(metrics.resume(2))
    metrics.append(Row(3, {"loss": 2.0}))
    follower.close(HANGS_S)
    assert backend.rows == [1, 2, 3, 1, 3]


def test_what_a_trainer_could_not_deliver_the_next_one_does(tmp_path: Path) -> None:
    metrics, backend = MetricsFile(tmp_path / "metrics.jsonl"), Recorder(num_failures=2)
    metrics.append(Row(1, {"loss": 1.0}))
    follower = follow(tmp_path, backend)
    assert backend.refused.wait(HANGS_S)
    follower.close(HANGS_S)
    assert backend.rows == []
    follow(tmp_path, backend).close(HANGS_S)
    assert backend.rows == [1]


def test_a_backend_that_hangs_is_left(tmp_path: Path) -> None:
    MetricsFile(tmp_path / "metrics.jsonl").append(Row(1, {"loss": 1.0}))
    release = threading.Event()

    class Hanging(Recorder):
        def log(self, row: Row) -> None:
            release.wait(HANGS_S)

    with capture_logs() as logs:
        follow(tmp_path, Hanging()).close(0.05)
    assert [entry["event"] for entry in logs] == ["tracking_abandoned"]
    release.set()


@pytest.mark.parametrize("said", ["", "x", "99999"])
def test_a_damaged_position_begins_anew_or_at_the_end(tmp_path: Path, said: str) -> None:
    MetricsFile(tmp_path / "metrics.jsonl").append(Row(1, {"loss": 1.0}))
    (tmp_path / "position").write_text(said)
    backend = Recorder()
    follow(tmp_path, backend).close(HANGS_S)
    assert backend.rows == ([] if said == "99999" else [1])
