"""The tables of numbers that peers computed with their own functions, `peers/*.json`, and what was given to those.

Each file is of one repository at one commit. `batches.json` has the inputs, by name: for estimators a row is an episode, whose
rewards and values stand by step; for losses it is a sequence, with one number a token in each column.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "peers"
Row = Mapping[str, Any]
Outcome = Mapping[str, np.ndarray]
"""What a function answers, flat, by the names of `Case.outputs`: `advantages`, `loss`, `gradient`, `kept` and so on."""
TOLERANCE = 1e-6
"""Of peers that compute in float32 too; here everything is float64."""


@dataclass(frozen=True, eq=False)
class Case:
    """One call of a peer's function."""

    peer: str
    repository: str
    version: str
    """The commit."""
    piece: str
    """What of the objective it is, by its name here where there is one."""
    function: str
    settings: Mapping[str, Any]
    """By the peer's names. Those of log-probabilities name the column that was given for them."""
    precision: str
    """`float64`, or `float32` where the peer asks for that or makes it that."""
    rows: Sequence[Row]
    outputs: Mapping[str, Any]

    def has(self, name: str) -> bool:
        return name in self.rows[0]

    def column(self, name: str) -> np.ndarray:
        """Of all rows, flat."""
        return flat([row[name] for row in self.rows])

    @property
    def theirs(self) -> Outcome:
        return {name: flat(found) for name, found in self.outputs.items()}


def flat(numbers: Any) -> np.ndarray:
    """float64, of numbers in lists of whatever depth; null, as of an episode that has none, is nothing."""
    if numbers is None:
        return np.zeros(0)
    if not isinstance(numbers, list):
        return np.array([numbers], dtype=np.float64)
    return np.concatenate([flat(part) for part in numbers]) if numbers else np.zeros(0)


def largest_gap(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Relative to theirs where those are above 1; infinite where there is a NaN."""
    assert ours.shape == theirs.shape
    gaps = np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))
    return float(np.nan_to_num(gaps, nan=np.inf).max(initial=0.0))


@cache
def cases() -> tuple[Case, ...]:
    batches = json.loads((FOLDER / "batches.json").read_text())
    found = []
    for file in sorted(FOLDER.glob("*.json")):
        table = json.loads(file.read_text())
        for case in table.get("cases", ()):
            rows = batches[case.pop("inputs")]
            found.append(Case(table["peer"], table["repository"], table["version"], rows=rows, **case))
    return tuple(found)
