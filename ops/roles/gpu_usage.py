"""Reads how full and how busy this process's GPUs are, from the driver's own library: no process is started, nothing else
is needed, and without a GPU there is nothing to say."""

import ctypes
import os
from collections.abc import Sequence
from typing import Any, TypeVar

_LIBRARY = "libnvidia-ml.so.1"
_MIB = 1 << 20
_MOST_GPUS = 64
Device = ctypes.c_void_p


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


_Answer = TypeVar("_Answer", _Memory, _Utilization)


class GpuUsage:
    """Call it for the figures as they are now. Their names do not depend on how many GPUs there are."""

    def __init__(self, nvml: Any, visible: str | None) -> None:
        """
        Args:
            nvml: the driver's library; None: it is not there.
            visible: as `CUDA_VISIBLE_DEVICES` says; None: all of this machine.
        """
        self._nvml = nvml
        self._devices = [] if nvml is None else _devices(nvml, visible)

    def __call__(self) -> dict[str, float]:
        if not self._devices:
            return {}
        told = {"gpus": float(len(self._devices))}
        if memory := self._asked(self._nvml.nvmlDeviceGetMemoryInfo, _Memory):
            used, total = sum(each.used for each in memory), sum(each.total for each in memory)
            told |= {"gpu_memory_mib": used / _MIB, "gpu_memory_share": used / max(1, total)}
        # A part of a GPU has memory of its own, and nobody knows how busy it is.
        if busy := self._asked(self._nvml.nvmlDeviceGetUtilizationRates, _Utilization):
            told["gpu_busy_share"] = sum(each.gpu for each in busy) / len(busy) / 100.0
        return told

    def _asked(self, ask: Any, kind: type[_Answer]) -> list[_Answer]:
        """Of the devices of which the driver can say it."""
        return [answer for device in self._devices if ask(device, ctypes.byref(answer := kind())) == 0]


def own_gpus() -> GpuUsage:
    """Of those that this process may use."""
    return GpuUsage(_loaded(), os.environ.get("CUDA_VISIBLE_DEVICES"))


def _loaded() -> ctypes.CDLL | None:
    try:
        nvml = ctypes.CDLL(_LIBRARY)
        return nvml if nvml.nvmlInit_v2() == 0 else None
    except (OSError, AttributeError):
        return None


def _devices(nvml: Any, visible: str | None) -> Sequence[Device]:
    """As CUDA reads the list: by index or by name, up to the first that is not there."""
    if visible is None:
        count = ctypes.c_uint()
        known = nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
        names = [str(index) for index in range(count.value)] if known else []
    else:
        names = [name.strip() for name in visible.split(",")]
    found = list[Device]()
    for name in names[:_MOST_GPUS]:
        device = Device()
        if name.isdecimal():
            code = nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(name)), ctypes.byref(device))
        else:
            code = nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(device))
        if code != 0:
            break
        found.append(device)
    return found
