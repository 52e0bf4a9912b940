"""metrics.jsonl: every announced version once, whatever a trainer left behind when it died."""

import json
from pathlib import Path

from trainer.tracking import Row
from trainer.tracking.metrics_file import MetricsFile


def lines(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_row_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    for _ in range(2):
        metrics = MetricsFile(path)
        metrics.append(Row(1, {"loss": 0.5}))
        metrics.append(Row(1, {"eval/success": 0.25}))
        metrics.append(Row(1, {"loss": 0.7}))
    assert lines(path) == [{"version": 1, "loss": 0.5}, {"version": 1, "eval/success": 0.25}]


def test_what_was_never_announced_and_half_a_line_are_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"version":1,"loss":0.5}\n{"version":2,"loss":0.4}\n{"version":3,"lo')
    metrics = MetricsFile(path)
    metrics.resume(1)
    assert path.read_bytes() == b'{"version":1,"loss":0.5}\n'
    assert metrics.missing(2) == [2]
    metrics.append(Row(2, {"loss": 0.3}))
    assert lines(path) == [{"version": 1, "loss": 0.5}, {"version": 2, "loss": 0.3}]


def test_what_is_no_number_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    MetricsFile(path).append(Row(1, {"loss": 0.5, "grad_norm": float("nan")}))
    assert lines(path) == [{"version": 1, "loss": 0.5, "grad_norm": None}]
    again = MetricsFile(path)
    assert again.missing(2) == [2]
