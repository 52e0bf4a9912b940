"""Weights that policies may load, their bytes, and who serves what."""

import enum

import msgspec

from schemas.ids import PolicyVersion, RunName, WorkerId
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


class Standing(enum.Enum):
    """How a policy worker stands to the versions that are announced."""

    SERVING = "serving"
    """It answers, and loads what is announced."""
    UNABLE = "unable"
    """It cannot load the newest one, and tries again: nobody waits for it as long as others serve."""
    AWAY = "away"
    """It answers nothing: it is starting, or has left."""


class ServedVersion(Message, frozen=True, tag="served/1"):
    """What a policy worker samples from: its word until its next one, however long that takes. Admission counts it.

    It is written before the worker answers anything, after each version that it has loaded, and when it cannot load one.
    """

    worker: WorkerId
    standing: Standing
    version: PolicyVersion
    """Answers that are begun from now on are sampled by it, or by a newer one. Of no meaning for one that is away."""
    at: float
    """Unix seconds."""
    announced_seq: int = 0
    """Sequence on CHECKPOINTS of the newest announcement that it has looked at."""
    wanted: PolicyVersion | None = None
    """The version that it cannot load."""
    reason: str = ""
    """Why it cannot."""
