"""Checkpoints of a few thousand bytes, and what stands between a policy and the bus in tests of them."""

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from bus.ports import Bus, Record
from schemas.bus_config import BusConfig
from schemas.errors import BusUnavailable
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint, FileHash, WeightChunk
from tests.builders import RUN
from trainer.versions.checkpoints import STATE_FILE, folder_name

CHUNK = 1000
CONFIG = BusConfig(run=RUN, weights="bus", max_payload_bytes=2 * CHUNK, weights_timeout_s=0.4)
"""What is published by it is in chunks of 1,000 bytes."""


def content(name: str, num_bytes: int) -> bytes:
    return random.Random(name).randbytes(num_bytes)


def version_files(version: int) -> dict[str, bytes]:
    """4 chunks of weights that every version has anew, 2 chunks of a tokenizer that never changes, an empty file, and what
    the trainer alone needs."""
    return {
        "model.safetensors": content(f"weights {version}", 3 * CHUNK + 1),
        "tokenizer.json": content("tokenizer", 2 * CHUNK),
        "added_tokens.json": b"",
        "trainer/optimizer.safetensors": content(f"optimizer {version}", 5 * CHUNK),
        STATE_FILE: content(f"state {version}", 10),
    }


def similar_files(version: int) -> dict[str, bytes]:
    """70 chunks of weights, of which a fiftieth of the 16-bit patterns move by one from each version to the next; the rest as
    ever."""
    patterns = np.random.default_rng(0).integers(0, 2**16, 35 * CHUNK, dtype=np.uint16)
    for number in range(version):
        patterns[np.random.default_rng(number + 1).random(len(patterns)) < 0.02] += 1
    return {**version_files(version), "model.safetensors": patterns.tobytes()}


NUM_WEIGHT_CHUNKS = 4
NUM_CHUNKS = 6


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def checkpoint_of(folder: Path, version: int, files: Mapping[str, bytes]) -> Checkpoint:
    return Checkpoint(
        run=RUN,
        version=PolicyVersion(version),
        uri=folder.as_uri(),
        files=tuple(FileHash(path=name, sha256=sha256(data), num_bytes=len(data)) for name, data in files.items()),
        parent=None,
        trainer_step=0,
        judged_seq=0,
    )


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def folder_of(root: Path, version: int, files: Mapping[str, bytes] | None = None) -> Path:
    """Where a trainer writes it."""
    return root / folder_name(version, checkpoint_of(root, version, files or version_files(version)).files)


def read(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def served(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Those that a policy loads."""
    return {name: data for name, data in files.items() if not name.startswith("trainer/")}


@dataclass
class Line:
    """A connection to the bus that counts the chunks it carries, and damages or loses what it is told to."""

    bus: Bus
    breaks_after: int = 1_000_000
    """Chunks that are read before the server is gone."""
    flips: int = 0
    """So many chunks arrive with a wrong byte, once each."""
    carried: list[str] = field(default_factory=list)
    _damaged: set[str] = field(default_factory=set)

    @property
    def port(self) -> Bus:
        return cast(Bus, self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bus, name)

    async def last(self, stream: str, subject_filter: str) -> Record | None:
        record = await self.bus.last(stream, subject_filter)
        if record is None or not isinstance(record.message, WeightChunk):
            return record
        if len(self.carried) >= self.breaks_after:
            raise BusUnavailable("the line was cut")
        self.carried.append(subject_filter)
        if len(self._damaged) < self.flips and subject_filter not in self._damaged:
            self._damaged.add(subject_filter)
            data = bytes([record.message.data[0] ^ 1]) + record.message.data[1:]
            return Record(stream, record.subject, record.seq, msgspec.structs.replace(record.message, data=data))
        return record
