"""Compares what is computed here with what peers compute, by the numbers that stand in `peers/`.

    python -m tests.numeric.comparison [--json FILE]

prints the tables of docs/objectives.md; the file has the same figures in full.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from tests.numeric import estimators, losses
from tests.numeric.cases import Case, Outcome, cases, largest_gap
from tests.numeric.differences import DIFFERENCES, Difference

Cells = Sequence[object]
RECOMPUTED: Mapping[str, Callable[[Case], Outcome]] = {
    **dict.fromkeys(estimators.ESTIMATORS, estimators.estimated),
    **dict.fromkeys(losses.LOSSES, losses.policy_loss),
    "value_loss": losses.value_loss,
    **dict.fromkeys(losses.KL_PIECES, losses.kl),
    "importance_weights": losses.importance_weights,
    "rejection": losses.rejection,
    "interpolated_proximal": losses.proximal,
    "overlong": estimators.overlong,
}
"""By the piece of a case."""


@dataclass(frozen=True)
class Source:
    """A function of a peer, and which piece of the objective it is compared with."""

    piece: str
    peer: str
    repository: str
    version: str
    function: str
    precision: str

    def __str__(self) -> str:
        return f"{self.piece} {self.peer} {self.version[:8]}"


@dataclass(frozen=True)
class Row:
    source: Source
    num_cases: int
    value: float
    """The largest gap of what is not a gradient."""
    gradient: float | None
    """None where the peer has none."""


@dataclass(frozen=True)
class DifferenceRow:
    pieces: tuple[str, ...]
    peers: tuple[str, ...]
    there: str
    compared: str
    num_cases: int
    size: float
    """The largest gap that there is without its rule."""


@cache
def by_source() -> dict[Source, list[Case]]:
    """In the order of `RECOMPUTED`."""
    order = {piece: index for index, piece in enumerate(RECOMPUTED)}
    found: dict[Source, list[Case]] = {}
    for case in sorted(cases(), key=lambda case: (order[case.piece], case.peer.lower(), case.version)):
        source = Source(case.piece, case.peer, case.repository, case.version, case.function, case.precision)
        found.setdefault(source, []).append(case)
    return found


def gaps(case: Case, *, without: Difference | None = None) -> Mapping[str, float]:
    """By the names of the outcome, after the rules of all differences that apply, but for one."""
    differences = [each for each in DIFFERENCES if each is not without and each.applies(case)]
    given = case
    for difference in differences:
        given = difference.given(given)
    ours = RECOMPUTED[case.piece](given)
    for difference in differences:
        ours = difference.turned(case, ours)
    return {name: largest_gap(ours[name], found) for name, found in case.theirs.items()}


@cache
def row(source: Source) -> Row:
    found = [gaps(case) for case in by_source()[source]]
    values = [gap for each in found for name, gap in each.items() if name != "gradient"]
    gradients = [each["gradient"] for each in found if "gradient" in each]
    return Row(source, len(found), max(values), max(gradients, default=None))


@cache
def difference_row(difference: Difference) -> DifferenceRow:
    mine = [case for found in by_source().values() for case in found if difference.applies(case)]
    size = max(max(gaps(case, without=difference).values()) for case in mine)
    pieces = tuple(dict.fromkeys(case.piece for case in mine))
    peers = tuple(sorted({case.peer for case in mine}, key=str.lower))
    return DifferenceRow(pieces, peers, difference.there, difference.compared, len(mine), size)


def tables() -> list[str]:
    """Agreement, and deliberate differences: as docs/objectives.md has them."""
    return [
        _table(
            ("piece", "peer", "version", "function", "in", "cases", "values", "gradients"),
            map(_cells, map(row, by_source())),
        ),
        _table(
            ("piece", "peer", "there", "compared after", "cases", "without"),
            map(_difference_cells, map(difference_row, DIFFERENCES)),
        ),
    ]


def _cells(found: Row) -> Cells:
    source = found.source
    origin = (source.peer, f"`{source.repository}@{source.version[:8]}`", f"`{source.function}`", source.precision)
    return (source.piece, *origin, found.num_cases, _shown(found.value), _shown(found.gradient))


def _difference_cells(found: DifferenceRow) -> Cells:
    where = (", ".join(found.pieces), ", ".join(found.peers))
    return (*where, found.there, found.compared, found.num_cases, f"{found.size:.2g}")


def _shown(gap: float | None) -> str:
    """One digit: what is below 1e-9 depends on the machine."""
    if gap is None:
        return ""
    return f"{gap:.0e}" if gap >= 1e-9 else "< 1e-9"


def _table(head: Sequence[str], body: Iterable[Cells]) -> str:
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in (head, ["---"] * len(head), *body))


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares what is computed here with what peers compute.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures in full")
    options = parser.parse_args()
    print("\n\n".join(tables()))
    if options.json:
        rows, differences = map(row, by_source()), map(difference_row, DIFFERENCES)
        figures = {"rows": [asdict(each) for each in rows], "differences": [asdict(each) for each in differences]}
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
