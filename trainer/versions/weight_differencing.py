"""Differences of a version's files from those of the version before, in a folder beside the versions' own, by their hashes."""

import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bus.weight_differences import write_difference
from bus.weight_routes import Catalogue
from schemas.errors import TrainerError
from schemas.messages import Checkpoint, FileHash, WeightDifference

_SUFFIX = ".safetensors"
_LEAST_BYTES = 2**16
"""Smaller files are sent as they are."""
_MOST_IN_A_ROW = 32
_SHARE_IN_A_ROW = 0.5
"""Of the file that they lead to: whoever has nothing yet fetches at most half as much again, and two versions, with all that
leads to them, need the room of three."""


@dataclass(frozen=True)
class Pair:
    """A file and the one before it."""

    file: FileHash
    path: Path
    base: FileHash
    base_path: Path
    most_bytes: int
    """Of a difference between them that is worth it."""


def pairs_of(
    checkpoint: Checkpoint, before: Checkpoint, catalogue: Catalogue, *, folder: Path, base_folder: Path
) -> Iterator[Pair]:
    """What a difference may be made between. Pure.

    `catalogue`: of what was announced up to `before`; `folder` and `base_folder`: of the two versions.
    """
    bases = {file.path: file for file in before.policy_files}
    for file in checkpoint.policy_files:
        base = bases.get(file.path)
        if base is None or not file.path.endswith(_SUFFIX) or file.num_bytes < _LEAST_BYTES:
            continue
        # No difference leads to what was announced before: that version's own route may be gone.
        if file.sha256 in catalogue.files:
            continue
        chain = catalogue.chain(base.sha256)
        room = int(_SHARE_IN_A_ROW * file.num_bytes) - sum(difference.file.num_bytes for difference in chain)
        if len(chain) < _MOST_IN_A_ROW and room > 0:
            yield Pair(file, folder / file.path, base, base_folder / base.path, room)


class DifferenceFiles:
    """The methods block."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @classmethod
    def beside(cls, folder: Path) -> "DifferenceFiles":
        """`folder`: of a version."""
        return cls(folder.parent / ".differences")

    def path(self, difference: WeightDifference) -> Path:
        return self._root / difference.file.sha256

    def written(self, pairs: Iterable[Pair]) -> list[WeightDifference]:
        """Those that are worth it.

        Raises:
            TrainerError: the disk is full, or a file cannot be read.
        """
        try:
            return [difference for pair in pairs if (difference := self._written(pair)) is not None]
        except OSError as error:
            raise TrainerError(f"{self._root} cannot be written ({error.strerror}): free some space there") from error

    def _written(self, pair: Pair) -> WeightDifference | None:
        if not pair.base_path.is_file():
            return None
        self._root.mkdir(parents=True, exist_ok=True)
        writing = self._root / f".writing-{pair.file.sha256}"
        if not write_difference(pair.base_path, pair.path, writing, old_sha256=pair.base.sha256, most_bytes=pair.most_bytes):
            return None
        with writing.open("rb") as opened:
            sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
        file = FileHash(path=f"{pair.file.path}.difference", sha256=sha256, num_bytes=writing.stat().st_size)
        difference = WeightDifference(sha256=pair.file.sha256, base_sha256=pair.base.sha256, file=file)
        writing.replace(self.path(difference))
        return difference

    def prune(self, kept: Collection[str]) -> None:
        """Deletes those whose hashes are not among these."""
        for path in self._root.glob("*"):
            if path.name not in kept:
                path.unlink(missing_ok=True)
