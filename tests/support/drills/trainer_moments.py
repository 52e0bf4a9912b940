"""Where a trainer is at a moment, told from outside: from its log, its checkpoint folders and what it has announced."""

import enum
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trainer.versions.checkpoints import version_of


class Phase(enum.StrEnum):
    LOADING = "loading"
    WAITING = "waiting for judgements"
    TRAINING = "training"
    SAVING = "saving"
    WRITTEN = "written, not announced"


_RESUMED, _COLLECTED, _PUBLISHED = "training_opened", "batch_collected", "version_published"


@dataclass(frozen=True)
class Moment:
    """What can be seen of one trainer process."""

    events: Sequence[str]
    """That it has logged."""
    writes: bool
    """A checkpoint that has not got its name yet."""
    newest_written: int
    """Version, by this process; 0: none."""
    newest_announced: int

    @property
    def num_published(self) -> int:
        """Versions, in this process's life."""
        return self.events.count(_PUBLISHED)

    @property
    def phase(self) -> Phase:
        if _RESUMED not in self.events:
            return Phase.LOADING
        if self.writes:
            return Phase.SAVING
        if self.newest_written > self.newest_announced:
            return Phase.WRITTEN
        return Phase.TRAINING if self._trained else Phase.WAITING

    @property
    def _trained(self) -> bool:
        return (
            next((event for event in reversed(self.events) if event in (_RESUMED, _COLLECTED, _PUBLISHED)), "") == _COLLECTED
        )


class Log:
    """What a role logs from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size if path.exists() else 0
        self.events: list[str] = []

    @property
    def waits(self) -> bool:
        """Whether the trainer has taken nothing in since it resumed or published."""
        return Moment(self.read(), writes=False, newest_written=0, newest_announced=0).phase is Phase.WAITING

    def read(self) -> list[str]:
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._offset)
                whole, newline, _ = file.read().rpartition(b"\n")
            self._offset += len(whole) + len(newline)
            self.events.extend(json.loads(line)["event"] for line in whole.splitlines() if line.startswith(b"{"))
        return self.events


def folders(checkpoints: Path) -> dict[int, int]:
    """Every finished checkpoint's version, by inode: one that is written again under the same name is another."""
    found = {}
    for folder in checkpoints.glob("v[0-9]*-*"):
        with suppress(FileNotFoundError):
            found[folder.stat().st_ino] = version_of(folder)
    return found


def writes(checkpoints: Path, pid: int) -> bool:
    return any(checkpoints.glob(f".writing-*-{pid}"))
