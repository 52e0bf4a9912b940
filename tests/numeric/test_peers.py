"""What is computed here agrees with what peers compute, but for the differences that are written down."""

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from schemas.extensions import ESTIMATORS, LOSSES
from schemas.objective_config import Aggregation, KlType
from tests.numeric import estimators, losses
from tests.numeric.cases import TOLERANCE, Case, cases, largest_gap
from tests.numeric.comparison import Source, by_source, difference_row, gaps, row, tables
from tests.numeric.differences import DIFFERENCES, Difference

PAGE = Path(__file__).parents[2] / "docs" / "objectives.md"
HEADING = "## Compared with others\n"
WITHOUT_PEER = {
    "behaviour_cloning": "the mean of -log pi",
    "weighted_cloning": "no peer has RAFT++'s; it is `truncated` with advantages 1",
    "reinforce": "-A log pi; what verl calls so has a ratio: it is `cispo`",
}
"""Losses that no peer has a function for."""
PIECES = {source.piece for source in by_source()}


@pytest.mark.parametrize("source", by_source(), ids=str)
def test_agrees(source: Source) -> None:
    found = row(source)
    assert found.num_cases > 0
    assert found.value <= TOLERANCE
    assert found.gradient is None or found.gradient <= TOLERANCE


def test_every_case_is_compared() -> None:
    assert sum(row(source).num_cases for source in by_source()) == len(cases())


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.there)
def test_differences_are_needed(difference: Difference) -> None:
    """A rule without which there is agreement would hide what it is said to explain."""
    assert difference_row(difference).size > TOLERANCE


def is_plain(case: Case) -> bool:
    return not any(difference.applies(case) for difference in DIFFERENCES)


def test_most_cases_are_compared_as_they_are() -> None:
    """Of every piece, but where the one peer that has it, or each, does something else."""
    plain = [case for found in by_source().values() for case in found if is_plain(case)]
    assert {case.piece for case in plain} >= PIECES - {
        "reinforce",
        "gae",
        "bi_level_gae",
        "no_concat_gae",
        "reinforce_plus_plus_baseline",
    }
    assert len(plain) > sum(map(len, by_source().values())) / 2


def test_every_estimator_has_a_peer() -> None:
    """But one that is another's among fewer episodes."""
    compared = {estimators.ESTIMATORS[piece] for piece in PIECES & set(estimators.ESTIMATORS)}
    assert compared == set(ESTIMATORS.builtin) - {"reinforce_plus_plus_by_kind"}


def test_every_loss_has_a_peer() -> None:
    compared = {losses.LOSSES[piece] for piece in PIECES & set(losses.LOSSES)}
    assert compared | set(WITHOUT_PEER) == set(LOSSES.builtin)
    assert not compared & set(WITHOUT_PEER)


def test_every_divergence_and_aggregation_has_a_peer() -> None:
    """Sequences of other programs are whole episodes: none has episodes of several."""
    modes = [mode for mode in get_args(Aggregation) if not mode.startswith("traj")]
    assert {f"kl:{kind}" for kind in get_args(KlType)} | {f"aggregation:{mode}" for mode in modes} <= PIECES


def test_the_page_has_the_tables() -> None:
    """`python -m tests.numeric.comparison` prints them. How large a gap of rounding is depends on the machine."""
    _, found, section = PAGE.read_text().partition(HEADING)
    assert found
    lines = section.splitlines()
    assert not [line for line in lines if line.startswith("#")]
    shown = [line for line in lines if line.startswith("|")]
    assert list(map(without_gaps, shown)) == list(map(without_gaps, "\n".join(tables()).splitlines()))


def without_gaps(line: str) -> list[str]:
    return [cell for cell in line.split(" | ") if not re.fullmatch(r"(< )?[\d.]+(e[+-]?\d+)?( \|)?", cell)]


def test_a_wrong_number_is_found() -> None:
    case = next(found for source, (found, *_) in by_source().items() if source.piece == "clipped")
    wrong = {**case.outputs, "loss": case.outputs["loss"] + 2 * TOLERANCE}
    changed = Case(**{**vars(case), "outputs": wrong})
    assert gaps(case)["loss"] <= TOLERANCE < gaps(changed)["loss"]
    assert largest_gap(np.array([np.nan, 0.0]), np.zeros(2)) == np.inf
