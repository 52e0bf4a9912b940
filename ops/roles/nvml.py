"""The driver's own library, asked about the GPUs that a process may use: no process is started, nothing else is needed, and
no memory of a GPU is taken."""

import ctypes
import os
from collections.abc import Sequence
from typing import Any

_LIBRARY = "libnvidia-ml.so.1"
_MOST_GPUS = 64
_NAME_BYTES = 96
Device = ctypes.c_void_p


def loaded() -> Any:
    """None: there is no driver."""
    try:
        nvml = ctypes.CDLL(_LIBRARY)
        return nvml if nvml.nvmlInit_v2() == 0 else None
    except (OSError, AttributeError):
        return None


def devices(nvml: Any, visible: str | None) -> Sequence[Device]:
    """As CUDA reads the list: by index or by name, up to the first that is not there.

    Args:
        nvml: the driver's library; None: it is not there.
        visible: as `CUDA_VISIBLE_DEVICES` says; None: all of this machine.
    """
    if nvml is None:
        return []
    if visible is None:
        count = ctypes.c_uint()
        known = nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
        entries = [str(index) for index in range(count.value)] if known else []
    else:
        entries = [entry.strip() for entry in visible.split(",")]
    found = list[Device]()
    for entry in entries[:_MOST_GPUS]:
        device = Device()
        if entry.isdecimal():
            code = nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(entry)), ctypes.byref(device))
        else:
            code = nvml.nvmlDeviceGetHandleByUUID(entry.encode(), ctypes.byref(device))
        if code != 0:
            break
        found.append(device)
    return found


def names(nvml: Any, visible: str | None) -> tuple[str, ...]:
    """What each of these devices is called in every process, however it was asked for there: `GPU-...` or `MIG-...`."""
    buffer, found = ctypes.create_string_buffer(_NAME_BYTES), list[str]()
    for device in devices(nvml, visible):
        if nvml.nvmlDeviceGetUUID(device, buffer, ctypes.c_uint(_NAME_BYTES)) != 0:
            return ()
        found.append(buffer.value.decode())
    return tuple(found)


def visible_here() -> str | None:
    """What this process was told of its devices."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")
