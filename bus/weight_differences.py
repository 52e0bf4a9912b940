"""Differences between two files of weights of one size: which 16-bit patterns changed, and by how much; nothing is lost.

At the learning rates of reinforcement learning most weights in bf16 are the same bits from one version to the next, and what
changes moves by a pattern or two. A difference is a row of blocks, each of 2^22 patterns but for the last:

    changed, gaps, near, far     uint32 each: patterns that changed, and the bytes of the three parts
    gaps                         patterns between those that changed: one byte each, 255 for "255 more, and"
    near                         how far each moved, one byte: 2 d for d >= 0, -2 d - 1 below; 255 for "see far"
    far                          how far the others moved, uint16

Parts are compressed by zlib, numbers are little-endian, and a last odd byte of the file stands at the end as it is.

Invariant: what is applied gives the new file or raises; its size is bounded by the old file's, whatever a difference says.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from schemas.errors import CheckpointCorrupt

_BLOCK = 2**22
_HEADER = struct.Struct("<4I")
_MOST = 255
_LEVEL = 1
Patterns = npt.NDArray[np.uint16]
Bytes = npt.NDArray[np.uint8]


def write_difference(old: Path, new: Path, difference: Path, *, old_sha256: str, most_bytes: int) -> bool:
    """Whether what turns `old` into `new` was written. Blocks; reads both files once.

    Nothing is left behind where it would be longer than `most_bytes`, the files differ in size, or `old` is another file.
    """
    num_bytes = new.stat().st_size
    if old.stat().st_size != num_bytes:
        return False
    digest = hashlib.sha256()
    with old.open("rb") as before, new.open("rb") as after, difference.open("wb") as written:
        for was, becomes in zip(_blocks(before), _blocks(after), strict=True):
            digest.update(was.tobytes())
            written.write(_encoded(was, becomes))
            if written.tell() > most_bytes:
                break
        digest.update(before.read(1))
        written.write(after.read(1))
        written.flush()
        os.fsync(written.fileno())
    if digest.hexdigest() == old_sha256 and difference.stat().st_size <= most_bytes:
        return True
    difference.unlink()
    return False


def apply_differences(old: Path, differences: Sequence[Path], new: Path) -> None:
    """Writes the file that these lead to, one after the other. Blocks.

    Raises:
        CheckpointCorrupt: they are no differences of this file.
    """
    odd = old.stat().st_size % 2
    with ExitStack() as stack:
        before, after = stack.enter_context(old.open("rb")), stack.enter_context(new.open("wb"))
        opened = [stack.enter_context(path.open("rb")) for path in differences]
        for block in _blocks(before):
            for difference in opened:
                _apply(block, difference)
            after.write(block.tobytes())
        rest = before.read()
        for difference in opened:
            rest = _exactly(difference, odd)
            if difference.read(1):
                raise CheckpointCorrupt("a difference goes on behind the end of its file")
        after.write(rest)
        after.flush()
        os.fsync(after.fileno())


def _blocks(file: BinaryIO) -> Iterator[Patterns]:
    """Leaves a last odd byte unread."""
    num_patterns = os.fstat(file.fileno()).st_size // 2
    for begin in range(0, num_patterns, _BLOCK):
        data = bytearray(file.read(2 * min(_BLOCK, num_patterns - begin)))
        yield np.frombuffer(data, dtype="<u2")


def _encoded(was: Patterns, becomes: Patterns) -> bytes:
    where = np.flatnonzero(was != becomes)
    moved = _zigzag(becomes[where] - was[where])
    is_far = moved >= _MOST
    parts = (
        _gap_bytes(np.diff(where, prepend=-1) - 1),
        np.where(is_far, _MOST, moved).astype(np.uint8),
        moved[is_far].astype("<u2"),
    )
    packed = [zlib.compress(part.tobytes(), _LEVEL) for part in parts]
    return b"".join([_HEADER.pack(len(where), *map(len, packed)), *packed])


def _apply(block: Patterns, read: BinaryIO) -> None:
    """Turns a block of the old file into that of the new one."""
    num_changed, *sizes = _HEADER.unpack(_exactly(read, _HEADER.size))
    if num_changed > len(block):
        raise CheckpointCorrupt(f"a difference changes {num_changed} of {len(block)} patterns")
    most = (num_changed + len(block) // _MOST, num_changed, 2 * num_changed)
    gaps, near, far = (_unpacked(_exactly(read, size), limit) for size, limit in zip(sizes, most, strict=True))
    where = np.cumsum(_gaps(gaps) + 1) - 1
    moved = near.astype(np.uint16)
    is_far = near == _MOST
    if not len(where) == len(near) == num_changed or 2 * int(is_far.sum()) != len(far):
        raise CheckpointCorrupt("the parts of a difference do not belong together")
    if num_changed and where[-1] >= len(block):
        raise CheckpointCorrupt(f"a difference changes pattern {where[-1]} of {len(block)}")
    moved[is_far] = np.frombuffer(far.tobytes(), dtype="<u2")
    block[where] += (moved >> 1) ^ -(moved & 1)


def _zigzag(moved: Patterns) -> Patterns:
    """Small numbers for small moves, up or down."""
    signed = moved.astype(np.int16)
    return ((signed << 1) ^ (signed >> 15)).astype(np.uint16)


def _gap_bytes(gaps: npt.NDArray[np.int64]) -> Bytes:
    ends = np.cumsum(gaps // _MOST + 1) - 1
    told = np.full(int(ends[-1]) + 1 if len(ends) else 0, _MOST, dtype=np.uint8)
    told[ends] = gaps % _MOST
    return told


def _gaps(told: Bytes) -> npt.NDArray[np.int64]:
    """Raises `CheckpointCorrupt` where the last one is not told to its end."""
    if len(told) and told[-1] == _MOST:
        raise CheckpointCorrupt("a difference breaks off inside a gap")
    sums = np.cumsum(told, dtype=np.int64)[told != _MOST]
    return np.diff(sums, prepend=0)


def _unpacked(data: bytes, most_bytes: int) -> Bytes:
    unpacking = zlib.decompressobj()
    try:
        found = unpacking.decompress(data, most_bytes + 1)
    except zlib.error as error:
        raise CheckpointCorrupt(f"a part of a difference cannot be unpacked: {error}") from error
    if len(found) > most_bytes or not unpacking.eof:
        raise CheckpointCorrupt("a part of a difference is longer than it can be, or breaks off")
    return np.frombuffer(found, dtype=np.uint8)


def _exactly(read: BinaryIO, num_bytes: int) -> bytes:
    data = read.read(num_bytes)
    if len(data) != num_bytes:
        raise CheckpointCorrupt("a difference breaks off")
    return data
