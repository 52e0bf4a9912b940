"""Weights that policies may load, their bytes, and who serves what."""

import enum

import msgspec

from schemas.ids import RunName
from schemas.messages.structs import Message, Struct
from schemas.ranges import Count, Moment, Real, Sha256, Version, Worker


class FileHash(Struct, frozen=True):
    path: str
    """Relative to the checkpoint's folder."""
    sha256: Sha256
    num_bytes: Count


class WeightDifference(Struct, frozen=True):
    """Makes a file of a version out of one of an earlier version: `bus.weight_differences`."""

    sha256: Sha256
    """Of the file that comes out."""
    base_sha256: Sha256
    """Of the file that it is applied to."""
    file: FileHash
    """What is stored on the bus; it lies in no folder."""


class Checkpoint(Message, frozen=True, tag="checkpoint/1"):
    """A set of weights that policies may load."""

    run: RunName
    version: Version
    uri: str
    """A `file://` folder that transformers and vLLM load."""
    files: tuple[FileHash, ...]
    parent: Version | None
    trainer_step: Count
    """Optimizer steps so far."""
    judged_seq: Count
    """Sequence on JUDGED up to which everything was consumed for this version."""
    num_trajectories: Count = 0
    """Training trajectories consumed so far; the feeder admits by it."""
    metrics: dict[str, Real] = msgspec.field(default_factory=dict)
    base: Version | None = None
    """The version whose weights `files` are adapters of; None: `files` are complete."""
    root: str = ""
    """Of version 0: the `file://` folder in which the folders of all later versions will stand."""
    differences: tuple[WeightDifference, ...] = ()
    """By which policies may make some of `files`. A file that one leads to need not be stored on the bus itself."""

    def contradiction(self) -> str:
        for name, other in (("parent", self.parent), ("base", self.base)):
            if other is not None and other >= self.version:
                return f"{name} {other} of version {self.version}"
        return ""

    @property
    def policy_files(self) -> tuple[FileHash, ...]:
        """What a policy loads: everything but what the trainer alone continues from."""
        return tuple(file for file in self.files if not file.path.startswith("trainer/"))


class WeightChunk(Message, frozen=True, tag="weights/1"):
    """One stretch of a checkpoint's file. It is the same wherever a file with this hash occurs."""

    file_sha256: Sha256
    begin: Count
    """Bytes before it in the file."""
    data: bytes
    sha256: Sha256
    """Of `data`."""


class ServingState(enum.Enum):
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

    worker: Worker
    state: ServingState
    version: Version
    """Answers that are begun from now on are sampled by it, or by a newer one. Of no meaning for one that is away."""
    at: Moment
    """Unix seconds."""
    announced_seq: Count = 0
    """Sequence on CHECKPOINTS of the newest announcement that it has looked at."""
    wanted: Version | None = None
    """The version that it cannot load."""
    reason: str = ""
    """Why it cannot."""
