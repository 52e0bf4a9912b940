"""Files of checkpoints in chunks on WEIGHTS: what is stored of a file, under the file's own hash.

A chunk's subject names its file's hash and its bytes, so it is written once whichever versions have the file, and whoever
lists the subjects knows what is missing. Nothing here says which version is which: that is announced on CHECKPOINTS.
"""

import hashlib
from collections.abc import Collection, Iterator
from typing import NamedTuple

from bus.ports import Bus
from bus.subjects import Subjects
from schemas.errors import MessageCorrupt
from schemas.messages import FileHash, WeightChunk

CHUNK_BYTES = 4 * 1024 * 1024


class Stretch(NamedTuple):
    """Bytes `[begin, end)` of a file."""

    begin: int
    end: int


def chunk_bytes(max_payload_bytes: int) -> int:
    """Half of what a server takes at most, and no more than 4 MiB: heartbeats share the connection with chunks."""
    return min(CHUNK_BYTES, max_payload_bytes // 2)


def stretches(num_bytes: int, chunk: int) -> list[Stretch]:
    """A whole file, in order; none for an empty one.

    Example: 10 bytes in chunks of 4 are [0, 4), [4, 8), [8, 10).
    """
    return [Stretch(begin, min(begin + chunk, num_bytes)) for begin in range(0, num_bytes, chunk)]


def missing(num_bytes: int, held: Collection[Stretch]) -> list[Stretch]:
    """The gaps between what is held, which may overlap."""
    gaps, reached = list[Stretch](), 0
    for begin, end in sorted(held):
        if begin > reached:
            gaps.append(Stretch(reached, begin))
        reached = max(reached, end)
    return [*gaps, Stretch(reached, num_bytes)] if reached < num_bytes else gaps


async def stored_files(bus: Bus, subjects: Subjects) -> set[str]:
    """The hashes of all files of which something is stored."""
    found = await bus.subjects(subjects.weight_chunks, subjects.everything("weights"))
    return {subject.split(".")[2] for subject in found}


async def stored(bus: Bus, subjects: Subjects, file_sha256: str) -> set[Stretch]:
    """What is stored of one file."""
    return set(_stretches_of(await bus.subjects(subjects.weight_chunks, subjects.weights_of(file_sha256))))


def _stretches_of(found: Collection[str]) -> Iterator[Stretch]:
    for subject in found:
        begin, _, end = subject.rpartition(".")[2].partition("-")
        if begin.isdigit() and end.isdigit():
            yield Stretch(int(begin), int(end))


def chunk_of(file: FileHash, begin: int, data: bytes) -> WeightChunk:
    """Bytes of a file, ready to be stored. Takes milliseconds."""
    return WeightChunk(file_sha256=file.sha256, begin=begin, data=data, sha256=hashlib.sha256(data).hexdigest())


def verified(chunk: WeightChunk, wanted: Stretch) -> bytes:
    """What a chunk holds. Takes milliseconds.

    Raises:
        MessageCorrupt: it is not what it says it is, or not what is wanted.
    """
    if (chunk.begin, len(chunk.data)) != (wanted.begin, wanted.end - wanted.begin):
        raise MessageCorrupt(f"bytes {wanted.begin} to {wanted.end} of a file hold something else")
    if hashlib.sha256(chunk.data).hexdigest() != chunk.sha256:
        raise MessageCorrupt(f"bytes {wanted.begin} to {wanted.end} of a file do not match their hash")
    return chunk.data


async def put(bus: Bus, subjects: Subjects, chunk: WeightChunk) -> None:
    """Stores one chunk.

    Raises:
        StreamFull: WEIGHTS has no room for it.
    """
    subject = subjects.weights(chunk.file_sha256, chunk.begin, chunk.begin + len(chunk.data))
    await bus.append(subjects.weight_chunks, subject, chunk)


async def get(bus: Bus, subjects: Subjects, file: FileHash, wanted: Stretch) -> WeightChunk | None:
    """One chunk, to be verified; None when it is not there (any more).

    Raises:
        MessageCorrupt: what is there is no chunk of this file.
    """
    record = await bus.last(subjects.weight_chunks, subjects.weights(file.sha256, *wanted))
    if record is None:
        return None
    if not isinstance(record.message, WeightChunk) or record.message.file_sha256 != file.sha256:
        raise MessageCorrupt(f"{record.subject} holds something else")
    return record.message
