"""A stand-in of the driver's library, which no test machine has."""

import ctypes
from dataclasses import dataclass
from typing import Any

GIB = 1 << 30
_NOT_SUPPORTED, _NOT_FOUND = 3, 6


@dataclass(frozen=True)
class Card:
    name: str
    used: int
    busy: int | None
    """Percent; None: a part of a card, of which the driver does not know."""


class Driver:
    """Answers as NVML does: 0 and the value written where it is pointed to, or a code."""

    def __init__(self, *cards: Card) -> None:
        self.cards = cards

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = len(self.cards)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: ctypes.c_uint, device: Any) -> int:  # noqa: N802
        return self._handle(index.value, device)

    def nvmlDeviceGetHandleByUUID(self, name: bytes, device: Any) -> int:  # noqa: N802
        return self._handle(next((i for i, card in enumerate(self.cards) if card.name == name.decode()), 99), device)

    def nvmlDeviceGetUUID(self, device: ctypes.c_void_p, name: Any, _: ctypes.c_uint) -> int:  # noqa: N802
        name.value = self._card(device).name.encode()
        return 0

    def _handle(self, index: int, device: Any) -> int:
        device._obj.value = index + 1
        return 0 if index < len(self.cards) else _NOT_FOUND

    def nvmlDeviceGetMemoryInfo(self, device: ctypes.c_void_p, memory: Any) -> int:  # noqa: N802
        memory._obj.total, memory._obj.used = 80 * GIB, self._card(device).used
        return 0

    def nvmlDeviceGetUtilizationRates(self, device: ctypes.c_void_p, rates: Any) -> int:  # noqa: N802
        busy = self._card(device).busy
        rates._obj.gpu = busy or 0
        return 0 if busy is not None else _NOT_SUPPORTED

    def _card(self, device: ctypes.c_void_p) -> Card:
        return self.cards[(device.value or 0) - 1]


DRIVER = Driver(Card("GPU-a", 60 * GIB, 90), Card("GPU-b", 20 * GIB, 30), Card("MIG-c", 8 * GIB, None))
