"""Versions that were fetched over the bus, on a policy's own disk.

    <root>/files/<sha256>            whole, verified files; `.partial` and `.journal` beside them while they arrive
    <root>/v000003-1f2e3d4c/         a version: hard links to its files, under their announced names
    <root>/lock                      held by the process that fetches: workers of one machine fetch a version once

A version's folder gets its name when everything is in it. Files that two versions share are there once.
"""

import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain, repeat
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from agents.partial_file import PartialFile
from agents.weight_files import disk_errors_named, file_digest, inside
from schemas.errors import CheckpointCorrupt
from schemas.file_lock import try_lock
from schemas.messages import Checkpoint, FileHash

_LOOK_S = 0.2


class WeightCache:
    """The methods block, but for `held`."""

    def __init__(self, root: Path, num_kept: int) -> None:
        """`num_kept`: versions, the latest ones."""
        self._root = root
        self._num_kept = num_kept

    def folder(self, checkpoint: Checkpoint) -> Path:
        """Where a version is, or will be."""
        digest = hashlib.sha256(msgspec.msgpack.encode(checkpoint.policy_files)).hexdigest()[:8]
        return self._root / f"v{checkpoint.version:06d}-{digest}"

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """While open, no other process writes here. Who dies lets go."""
        with disk_errors_named(self._root):
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # Waiting in a thread could not be cancelled.
            for pause_s in chain((0.0,), repeat(_LOOK_S)):
                await anyio.sleep(pause_s)
                if try_lock(descriptor, self._root):
                    break
            yield
        finally:
            os.close(descriptor)

    def has(self, file: FileHash) -> bool:
        """Whether the whole file is here; one that was damaged since is dropped."""
        path = self._file(file)
        if not path.is_file():
            return False
        if path.stat().st_size == file.num_bytes and file_digest(path) == file.sha256:
            return True
        path.unlink()
        return False

    def place(self, file: FileHash) -> Path | None:
        """Where a file is that differences may be applied to; it is not read."""
        path = self._file(file)
        return path if path.is_file() and path.stat().st_size == file.num_bytes else None

    def make(self, file: FileHash, *, base: Path, differences: Sequence[FileHash]) -> None:
        """Makes a file out of another by differences that are here; without any, it is a copy.

        Raises:
            CheckpointCorrupt: what comes out is another file.
            PolicyError: it cannot be written.
        """
        from bus.weight_differences import apply_differences

        path = self._file(file)
        making = path.with_name(f"{path.name}.making")
        try:
            with disk_errors_named(self._root):
                apply_differences(base, [self._file(difference) for difference in differences], making)
            if file_digest(making) != file.sha256:
                raise CheckpointCorrupt(f"{file.path} was made of {base} and is not what was announced")
            making.replace(path)
        finally:
            making.unlink(missing_ok=True)

    def partial(self, file: FileHash) -> PartialFile:
        return PartialFile.resume(self._file(file), file)

    def assemble(self, checkpoint: Checkpoint) -> Path:
        """Makes the version's folder of files that are all here.

        Raises:
            CheckpointCorrupt: a file's name leads out of the folder.
        """
        final = self.folder(checkpoint)
        writing = self._root / f".writing-{final.name}"
        with disk_errors_named(self._root):
            shutil.rmtree(writing, ignore_errors=True)
            shutil.rmtree(final, ignore_errors=True)
            writing.mkdir()
            for file in checkpoint.policy_files:
                path = inside(writing, file.path)
                path.parent.mkdir(parents=True, exist_ok=True)
                os.link(self._file(file), path)
            writing.rename(final)
        return final

    def prune(self, *, base: int | None) -> None:
        """Deletes all but the latest versions and the one that they are adapters of, and files that no version has. Loading
        has read what it was to read."""
        for old in sorted(self._root.glob("v[0-9]*-*"))[: -self._num_kept]:
            if base is None or not old.name.startswith(f"v{base:06d}-"):
                shutil.rmtree(old, ignore_errors=True)
        for file in (self._root / "files").glob("*"):
            if file.stat().st_nlink == 1:
                file.unlink()

    def _file(self, file: FileHash) -> Path:
        if not (len(file.sha256) == 64 and all(digit in "0123456789abcdef" for digit in file.sha256)):
            raise CheckpointCorrupt(f"{file.path} was announced with {file.sha256!r}, which is no SHA-256")
        return self._root / "files" / file.sha256
