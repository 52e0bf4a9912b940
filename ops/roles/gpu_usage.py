"""Reads how full and how busy this process's GPUs are; without a GPU there is nothing to say."""

import ctypes
from typing import Any, TypeVar

from ops.roles import nvml

_MIB = 1 << 20


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


_Answer = TypeVar("_Answer", _Memory, _Utilization)


class GpuUsage:
    """Call it for the figures as they are now. Their names do not depend on how many GPUs there are."""

    def __init__(self, driver: Any, visible: str | None) -> None:
        """As of `nvml.devices`."""
        self._driver = driver
        self._devices = nvml.devices(driver, visible)

    def __call__(self) -> dict[str, float]:
        if not self._devices:
            return {}
        told = {"gpus": float(len(self._devices))}
        if memory := self._asked(self._driver.nvmlDeviceGetMemoryInfo, _Memory):
            used, total = sum(each.used for each in memory), sum(each.total for each in memory)
            told |= {"gpu_memory_mib": used / _MIB, "gpu_memory_share": used / max(1, total)}
        # A part of a GPU has memory of its own, and nobody knows how busy it is.
        if busy := self._asked(self._driver.nvmlDeviceGetUtilizationRates, _Utilization):
            told["gpu_busy_share"] = sum(each.gpu for each in busy) / len(busy) / 100.0
        return told

    def _asked(self, ask: Any, kind: type[_Answer]) -> list[_Answer]:
        """Of the devices of which the driver can say it."""
        return [answer for device in self._devices if ask(device, ctypes.byref(answer := kind())) == 0]


def own_gpus() -> GpuUsage:
    """Of those that this process may use."""
    return GpuUsage(nvml.loaded(), nvml.visible_here())
