"""Figures for people: units by name, and no powers of ten that are large."""

import math

import pytest

from ops.monitor.screen.figures import figure, figures, number
from schemas.messages import Role


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("memory_mib", 1150.0, "memory 1.12 GiB"),
        ("memory_mib", 79.4, "memory 79 MiB"),
        ("gpu_memory_mib", 61440.0, "gpu memory 60 GiB"),
        ("gpu_busy_share", 0.9, "gpu busy 90 %"),
        ("history_mb", 20.34, "history 20.3 MB"),
        ("tokens_per_s", 1234.5, "tokens 1,234/s"),
        ("answer_s", 0.774, "answer 0.774 s"),
        ("cpu_s", 4380.0, "cpu 73 min"),
        ("steps_taken", 1150000.0, "steps taken 1,150,000"),
        ("loss", 12.345, "loss 12.3"),
        ("mismatch", 5.1e-07, "mismatch 5e-07"),
        ("reward", -0.25, "reward -0.25"),
        ("cost", 1e300, "cost 1e+300"),
        ("memory_mib", math.nan, "memory mib nan"),
    ],
)
def test_a_figure_has_its_unit(name: str, value: float, expected: str) -> None:
    assert figure(name, value) == expected


def test_what_says_most_comes_first_and_nothing_is_left_out() -> None:
    told = figures(Role.POLICY, {"answer_s": 1.0, "running": 3.0, "memory_mib": 10.0, "zeal": 2.0, "slots": 8.0})
    assert told == "running 3, slots 8, memory 10 MiB, answer 1 s, zeal 2"


@pytest.mark.parametrize("value", [0.0, 0.001, 0.5, 99.5, 1e3, 123456789.0])
def test_no_power_of_ten_is_shown_of_a_usual_number(value: float) -> None:
    assert "e" not in number(value)
