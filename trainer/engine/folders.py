"""Folders on the disk of rank 0, for ranks whose node does not have them: copied there before they are read, and back behind
what was written.

Where all nodes see them under the same path nothing travels. What does goes from rank to rank, a piece at a time; each node
without them keeps one copy, for as long as the engine is open. One that was left by ranks which were killed goes when the
run's next ranks begin there.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from schemas.errors import TrainerError
from schemas.ids import RunName
from trainer.engine.ranks import Ranks

_PIECE_BYTES = 16 * 2**20


class _File(msgspec.Struct, frozen=True, array_like=True):
    path: str
    num_bytes: int


_decoder = msgspec.msgpack.Decoder(list[_File])


class Folders:
    """Of one engine, on every rank. Every method but `close` is called on all ranks at once, with rank 0's paths."""

    def __init__(self, ranks: Ranks, run: RunName) -> None:
        self._ranks = ranks
        self._copies_for_node = ranks.rank > 0 and os.environ.get("LOCAL_RANK", "0") == "0"
        self._copies = Path(tempfile.gettempdir()) / f"millrace-ranks-{os.getuid()}-{run}"
        self.close()

    def close(self) -> None:
        if self._copies_for_node:
            shutil.rmtree(self._copies, ignore_errors=True)

    def here(self, folder: Path) -> Path:
        """Where this rank reads what is in rank 0's `folder`."""
        files = self._told(_files(folder), source=0)
        sees = self._sees(folder, files)
        if self._all(sees):
            return folder
        mine = folder if sees else self._private() / folder.name
        for file in files:
            with ExitStack() as stack:
                read = stack.enter_context((folder / file.path).open("rb")) if self._ranks.rank == 0 else None
                written = None
                if self._copies_for_node and not sees:
                    (mine / file.path).parent.mkdir(parents=True, exist_ok=True)
                    written = stack.enter_context((mine / file.path).open("wb"))
                for _ in range(0, file.num_bytes, _PIECE_BYTES):
                    piece = self._ranks.broadcast(read.read(_PIECE_BYTES) if read is not None else b"")
                    if written is not None:
                        written.write(piece)
        self._ranks.sum(0)  # until all copies are whole
        return mine

    @contextmanager
    def written(self, folder: Path) -> Iterator[Path]:
        """Where this rank writes what is in rank 0's `folder` when the context is left.

        Raises:
            OSError: on rank 0, what others wrote cannot be stored there.
        """
        sees = self._sees(folder, [])
        if self._all(sees):
            yield folder
            return
        mine = folder if sees else self._private() / f"written-{self._ranks.rank}"
        (mine / "trainer").mkdir(parents=True, exist_ok=True)
        try:
            yield mine
        finally:
            failure = None
            for rank in range(1, self._ranks.size):
                for file in self._told([] if sees else _files(mine), source=rank):
                    failure = self._moved(mine / file.path, folder / file.path, file.num_bytes, source=rank) or failure
            if not sees:
                shutil.rmtree(mine)
        if failure is not None:
            raise failure

    def _moved(self, source_path: Path, target: Path, num_bytes: int, *, source: int) -> OSError | None:
        """From the rank `source` to rank 0, all of it whatever becomes of it there. Why it could not be stored."""
        failure = None
        with ExitStack() as stack:
            read = stack.enter_context(source_path.open("rb")) if self._ranks.rank == source else None
            written = None
            if self._ranks.rank == 0:
                try:
                    written = stack.enter_context(target.open("wb"))
                except OSError as error:
                    failure = error
            for _ in range(0, num_bytes, _PIECE_BYTES):
                piece = self._ranks.move(read.read(_PIECE_BYTES) if read is not None else b"", source=source)
                try:
                    if written is not None and failure is None:
                        written.write(piece)
                except OSError as error:
                    failure = error
        return failure

    def _sees(self, folder: Path, files: list[_File]) -> bool:
        return self._ranks.rank == 0 or _sees(folder, files)

    def _all(self, here: bool) -> bool:
        return self._ranks.sum(float(not here)) == 0

    def _told(self, files: list[_File], *, source: int) -> list[_File]:
        return _decoder.decode(self._ranks.broadcast(msgspec.msgpack.encode(files), source=source))

    def _private(self) -> Path:
        """Made by this user alone, whatever others put there."""
        self._copies.mkdir(mode=0o700, exist_ok=True)
        if self._copies.stat(follow_symlinks=False).st_uid != os.getuid():
            raise TrainerError(f"{self._copies} belongs to somebody else: remove it")
        return self._copies


def _files(folder: Path) -> list[_File]:
    """None of a folder that is not here."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [_File(path.relative_to(folder).as_posix(), path.stat().st_size) for path in paths]


def _sees(folder: Path, files: list[_File]) -> bool:
    paths = ((folder / file.path, file.num_bytes) for file in files)
    return folder.is_dir() and all(path.is_file() and path.stat().st_size == num_bytes for path, num_bytes in paths)
