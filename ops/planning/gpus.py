"""GPUs by name: how much memory they have."""

import subprocess
from dataclasses import dataclass

from schemas.errors import ConfigurationError

GIB = float(1 << 30)
_MEMORY_GIB = {
    "GB200": 184.0,
    "B300": 268.0,
    "B200": 179.0,
    "H200": 139.8,
    "H100": 79.2,
    "A100": 79.2,
    "L40S": 44.5,
    "A10": 22.5,
    "L4": 22.5,
    "RTX 4090": 23.6,
    "RTX 3090": 23.6,
}
"""What CUDA says that they have, by a part of their names. Of an A100 the larger kind."""


@dataclass(frozen=True)
class Gpu:
    name: str
    memory: float
    """Bytes."""


def gpu_named(text: str) -> Gpu:
    """By a part of its name, or as `NAME:GiB`.

    Raises:
        ConfigurationError: nobody knows it; says how to write its memory.
    """
    name, _, gib = text.partition(":")
    if gib.replace(".", "", 1).isdecimal():
        return Gpu(name, float(gib) * GIB)
    known = next((part for part in _MEMORY_GIB if part.lower() in text.lower()), None)
    if known is None:
        raise ConfigurationError(f"--gpu {text} is not known: write its memory behind it, as in {text}:80, or {said_gpus()}")
    return Gpu(text, _MEMORY_GIB[known] * GIB)


def said_gpus() -> str:
    return "one of " + ", ".join(_MEMORY_GIB)


def own_gpu() -> Gpu | None:
    """The first of this machine; None: it has none."""
    query = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
    try:
        said = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    name, _, mib = said.splitlines()[0].rpartition(", ") if said.strip() else ("", "", "")
    return Gpu(name, float(mib) * (1 << 20)) if name else None
