"""Writes files that are there whole or not at all, whatever is killed and whenever.

A file is written under another name, forced to disk and renamed. What a killed writer leaves behind ends in `.partial`;
readers never look at it, and the next writer removes it.
"""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_PARTIAL = ".partial"
_MODE = 0o700
_SYNC_AT_ONCE = 16


def write_whole(path: Path, content: bytes, *, force: bool = True) -> None:
    """Replaces or creates one file; its folder has to exist, and is forced to disk by `sync`.

    Without `force` the content may be lost with the machine, though not with the process, until `sync` is given the path.
    """
    partial = path.with_name(path.name + _PARTIAL)
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        if force:
            os.fsync(file.fileno())
    partial.replace(path)


def make_folder(path: Path) -> None:
    """Creates a folder, and those above it, for its owner alone."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(mode=_MODE, exist_ok=True)
    sync(path.parent)


def sync_all(paths: Iterable[Path]) -> None:
    """`sync` of many: at once, since the disk then writes them together."""
    with ThreadPoolExecutor(_SYNC_AT_ONCE) as pool:
        for _ in pool.map(sync, paths):
            pass


def sync(path: Path) -> None:
    """Forces a file's content, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path) -> int:
    """Removes what killed writers left; only who holds the folder's lock may do so. Returns how many files."""
    leftovers = list(folder.rglob(f"*{_PARTIAL}"))
    for path in leftovers:
        path.unlink()
    return len(leftovers)
