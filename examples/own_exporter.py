"""An export format of one's own: a line of CSV per episode.

millrace export runs/mine --format examples/own_exporter.py:csv --out out/csv
"""

import csv

from ops.archive.exports.played import Played
from ops.archive.formats import FormatOptions, exporter


@exporter("csv")
class Csv:
    """Columns: episode, outcome, steps, reward (empty without a verdict)."""

    def __init__(self, options: FormatOptions) -> None:
        self._file = (options.folder / "episodes.csv").open("w", newline="", encoding="utf-8")
        self._rows = csv.writer(self._file)
        self._rows.writerow(["episode", "outcome", "steps", "reward"])

    def add(self, played: Played) -> int:
        trajectory, judgement = played.trajectory, played.judgement
        reward = judgement.reward if judgement else None
        self._rows.writerow([trajectory.episode, trajectory.outcome.value, len(played.steps), reward])
        return len(played.steps)

    def close(self) -> None:
        self._file.close()
