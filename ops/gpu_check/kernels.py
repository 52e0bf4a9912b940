"""Where a GPU's time goes: seconds by kind of kernel."""

from collections.abc import Callable, Mapping
from typing import Final

import torch
from torch.profiler import ProfilerActivity, profile

_KINDS: Final[Mapping[str, str]] = {
    "flash": "attention",
    "fmha": "attention",
    "sdpa": "attention",
    "nvjet": "matrix products",
    "gemm": "matrix products",
    "cutlass": "matrix products",
    "adam": "optimizer",
    "triton": "fused by the compiler",
    "nccl": "between GPUs",
    "mem": "copies",
    "copy": "copies",
}
"""By a part of a kernel's name; the first that is found."""
OTHERS = "other kernels"
_US = 1e-6


def gpu_seconds(work: Callable[[], object]) -> dict[str, float]:
    """What the kernels of `work` take, the largest first."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        work()
        torch.cuda.synchronize()
    seconds: dict[str, float] = {}
    for event in found.key_averages():
        # Beside kernels there are ranges that a library marks, which are made of kernels.
        if str(event.device_type).endswith("CUDA") and "#" not in event.key:
            kind = kind_of(event.key)
            seconds[kind] = seconds.get(kind, 0.0) + event.self_device_time_total * _US
    return dict(sorted(seconds.items(), key=lambda each: -each[1]))


def kind_of(kernel: str) -> str:
    return next((kind for part, kind in _KINDS.items() if part in kernel.lower()), OTHERS)
