"""GPUs by name: how much memory they have."""

import subprocess
from dataclasses import dataclass, replace

from schemas.errors import ConfigurationError
from trainer.engine.throughput import known_tflops, of_device

GIB = float(1 << 30)
_KNOWN = {
    "GB200": (184.0, 8.0),
    "B300": (268.0, 8.0),
    "B200": (179.0, 8.0),
    "GH200": (94.5, 4.0),
    "H200": (139.8, 4.8),
    "H100": (79.2, 3.35),
    "A100": (79.2, 2.04),
    "L40S": (44.5, 0.864),
    "L40": (44.5, 0.864),
    "A10": (22.5, 0.6),
    "L4": (22.5, 0.3),
    "RTX 4090": (23.6, 1.008),
    "RTX 3090": (23.6, 0.936),
}
"""GiB that CUDA says that they have, and TB/s of their memory by the makers' data sheets, by words of their names. Of an A100
the larger kind, of a GH200 the smaller."""


@dataclass(frozen=True)
class Gpu:
    name: str
    memory: float
    """Bytes; 0: not known, as where it is the host's too."""
    flops: float = 0.0
    """A second in bf16; 0: not known."""
    bandwidth: float = 0.0
    """Bytes a second from and to its memory; 0: not known."""

    @property
    def is_known(self) -> bool:
        """Whether its speed is."""
        return self.flops > 0 and self.bandwidth > 0


def gpu_named(text: str) -> Gpu:
    """By words of its name, or as `NAME:GiB` or `NAME:GiB:TFLOPS:TB/s`.

    Raises:
        ConfigurationError: nobody knows it; says how to write its memory.
    """
    name, *said = text.split(":")
    if len(said) in (1, 3) and all(each.replace(".", "", 1).isdecimal() for each in said):
        gib, tflops, terabytes = (*map(float, said), 0.0, 0.0)[:3]
        return Gpu(name, gib * GIB, tflops * 1e12, terabytes * 1e12)
    if (known := _known(text)) is None:
        raise ConfigurationError(
            f"--gpu {text} is not known: write its memory in GiB behind it, as in {name}:80, its TFLOP/s in bf16 and its TB/s "
            f"too, as in {name}:80:990:3.3, or {said_gpus()}"
        )
    return known


def _known(name: str) -> Gpu | None:
    found = of_device(_KNOWN, name)
    if found is None:
        return None
    gib, terabytes = found
    return Gpu(name, gib * GIB, known_tflops(name) * 1e12, terabytes * 1e12)


def said_gpus() -> str:
    return "one of " + ", ".join(_KNOWN)


def own_gpu() -> Gpu | None:
    """The first of this machine; None: it has none."""
    query = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
    try:
        said = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    name, _, mib = said.splitlines()[0].rpartition(", ") if said.strip() else ("", "", "")
    if not name:
        return None
    known = _known(name) or Gpu(name, 0.0)
    return replace(known, memory=float(mib) * (1 << 20)) if mib.isdecimal() else known
