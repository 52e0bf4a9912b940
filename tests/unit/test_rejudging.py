"""How far a queue has come, and which rubrics a run may take on."""

from dataclasses import replace

import pytest

from ops.rejudging.admission import require_admissible, with_rubric
from ops.rejudging.draining import Remaining
from schemas.config import BusConfig, Config
from schemas.errors import ConfigurationError


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
