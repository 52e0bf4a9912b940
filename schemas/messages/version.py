"""Weights that policies may load, and their bytes."""

import msgspec

from schemas.ids import PolicyVersion, RunName
from schemas.messages.structs import Message, Struct


class FileHash(Struct, frozen=True):
    path: str
    """Relative to the checkpoint's folder."""
    sha256: str
    num_bytes: int


class Checkpoint(Message, frozen=True, tag="checkpoint/1"):
    """A set of weights that policies may load."""

    run: RunName
    version: PolicyVersion
    uri: str
    """A `file://` folder that transformers and vLLM load."""
    files: tuple[FileHash, ...]
    parent: PolicyVersion | None
    trainer_step: int
    """Optimizer steps so far."""
    judged_seq: int
    """Sequence on JUDGED up to which everything was consumed for this version."""
    num_trajectories: int = 0
    """Training trajectories consumed so far; the feeder admits by it."""
    metrics: dict[str, float] = msgspec.field(default_factory=dict)
    base: PolicyVersion | None = None
    """The version whose weights `files` are adapters of; None: `files` are complete."""

    @property
    def policy_files(self) -> tuple[FileHash, ...]:
        """What a policy loads: everything but what the trainer alone continues from."""
        return tuple(file for file in self.files if not file.path.startswith("trainer/"))


class WeightChunk(Message, frozen=True, tag="weights/1"):
    """One stretch of a checkpoint's file. It is the same wherever a file with this hash occurs."""

    file_sha256: str
    begin: int
    """Bytes before it in the file."""
    data: bytes
    sha256: str
    """Of `data`."""
