"""Computes the result of an offline training from the versions that it announced."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from ops.run.folder import RunFolder
from schemas.messages import Checkpoint
from trainer.versions.checkpoints import folder_of

_SHOWN = ("loss", "grad_norm", "success", "reward", "fresh_samples", "samples", "mismatch")
"""Metrics of an iteration that the table compares."""


@dataclass(frozen=True, kw_only=True)
class OfflineResult:
    """The metrics of `result.json`."""

    num_versions: int
    num_stored: int
    """Judged training episodes of the data set."""
    num_passes: float
    """Passes over it, begun ones as a fraction."""
    num_trajectories: int
    """Judgements that were consumed, once a pass."""
    num_updates: int
    num_samples: int
    """Steps trained on, repetitions counted."""
    stored_version: int
    """Version of the stored episodes that training began from; -1: not known."""
    first: dict[str, float]
    """Metrics of the first iteration and of the last."""
    last: dict[str, float]
    model: str
    """Folder of the last version, in the run's folder."""
    seconds: float

    @classmethod
    def of(
        cls, versions: Sequence[Checkpoint], folder: RunFolder, *, num_stored: int, stored_version: int, seconds: float
    ) -> "OfflineResult":
        """`versions`: every announced one, version 0 included."""
        trained, last = [version for version in versions if version.version > 0], versions[-1]
        return cls(
            num_versions=len(trained),
            num_stored=num_stored,
            num_passes=round(last.num_trajectories / num_stored, 3),
            num_trajectories=last.num_trajectories,
            num_updates=last.trainer_step,
            num_samples=round(sum(version.metrics.get("samples", 0.0) for version in trained)),
            stored_version=stored_version,
            first=_metrics(trained[0]),
            last=_metrics(trained[-1]),
            model=str(folder.relative(folder_of(last.uri))),
            seconds=round(seconds, 1),
        )

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    def table(self) -> Table:
        table = Table(title="Offline training", title_justify="left", box=None, padding=(0, 2, 0, 0))
        for heading in ("", "version 1", f"version {self.num_versions}"):
            table.add_column(heading, style="bold" if heading else "")
        for name in _SHOWN:
            table.add_row(name, _shown(self.first.get(name)), _shown(self.last.get(name)))
        for name, value in asdict(self).items():
            if not isinstance(value, dict):
                table.add_row(name, Text(str(value), overflow="fold"))
        return table


def _metrics(version: Checkpoint) -> dict[str, float]:
    return {name: version.metrics[name] for name in _SHOWN if name in version.metrics}


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
