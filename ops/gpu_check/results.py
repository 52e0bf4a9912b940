"""What the parts of a check tell each other and the one who looks: JSON in one folder."""

import shutil
from pathlib import Path
from typing import TypeVar

import msgspec

from agents.engine import Generation

T = TypeVar("T", bound=msgspec.Struct)
SCRATCH = "scratch-"
"""Before the names of folders that a part has for itself, in the folder of figures."""


class Throughput(msgspec.Struct, frozen=True):
    """Answers side by side."""

    at_once: int
    num_answers: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float

    @property
    def tokens_per_s(self) -> float:
        return self.completion_tokens / self.seconds


class Refresh(msgspec.Struct, frozen=True):
    """A version's way to the engine."""

    over: str
    """path or bus."""
    megabytes: float
    stored_s: float | None
    """Until everything was on the bus, before the announcement."""
    served_s: float
    """From the announcement on."""


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    device: str
    num_parts: int
    """GPUs that share the model."""
    opened_s: float
    memory_gib: float | None
    """That is taken on one GPU, everything included."""
    planned_gib: float
    throughput: tuple[Throughput, ...]
    refreshes: tuple[Refresh, ...]


class Answers(msgspec.Struct, frozen=True):
    """To the first of the drawn pages, sampled at temperature 1."""

    generations: tuple[Generation, ...]


class Training(msgspec.Struct, frozen=True, kw_only=True):
    device: str
    layout: str
    """packed, packed with activations kept, one by one."""
    samples_at_once: int
    """Of a micro-batch."""
    tokens_a_step: int
    step_s: float
    tokens_per_s: float
    tflops_per_s: float
    mfu: float | None
    """None where the device's peak is not known."""
    memory_gib: float | None
    planned_gib: float
    gpu_s: dict[str, float] = {}
    """Of one more step, by kind of kernel; empty on a CPU."""


class Agreement(msgspec.Struct, frozen=True):
    """The mismatch gate on the answers, before anything is trained."""

    trainer: str
    """Its precision."""
    mean: float
    k3: float
    far: float


class Trained(msgspec.Struct, frozen=True):
    runs: tuple[Training, ...]
    agreement: Agreement | None
    """None where no policy had answered."""


class Learning(msgspec.Struct, frozen=True, kw_only=True):
    """Minutes of the whole loop on MiniWoB++."""

    seconds: float
    num_versions: int
    success: tuple[float, ...]
    """Of each version's episodes."""
    most_k3: float | None


def write(folder: Path, name: str, result: msgspec.Struct) -> None:
    (folder / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result)))


def read(folder: Path, name: str, kind: type[T]) -> T | None:
    """None where that part has not come to anything."""
    file = folder / f"{name}.json"
    return msgspec.json.decode(file.read_bytes(), type=kind) if file.is_file() else None


def forget_scratch(folder: Path) -> None:
    """Copies of models, of a part that was killed."""
    for left in folder.glob(f"{SCRATCH}*"):
        shutil.rmtree(left, ignore_errors=True)


def forget(folder: Path) -> None:
    """What an earlier check came to."""
    for pattern in ("serving-*.json", "answers.json", "training.json", "learning.json"):
        for file in folder.glob(pattern):
            file.unlink()
