"""How full and how busy GPUs are, read from a stand-in of the driver's library; and nothing where there is none."""

import ctypes
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from bus.memory import MemoryBus
from bus.presence import presence
from bus.subjects import Subjects
from ops.roles.gpu_usage import GpuUsage, own_gpus
from schemas.ids import RunName, WorkerId
from schemas.messages import Heartbeat, Role
from tests.deadlines import HANGS_S

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


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("0", {"gpus": 1.0, "gpu_memory_mib": 61440.0, "gpu_memory_share": 0.75, "gpu_busy_share": 0.9}),
        ("0,1", {"gpus": 2.0, "gpu_memory_mib": 81920.0, "gpu_memory_share": 0.5, "gpu_busy_share": 0.6}),
        ("GPU-b", {"gpus": 1.0, "gpu_memory_mib": 20480.0, "gpu_memory_share": 0.25, "gpu_busy_share": 0.3}),
        ("MIG-c", {"gpus": 1.0, "gpu_memory_mib": 8192.0, "gpu_memory_share": 0.1}),
        (None, {"gpus": 3.0, "gpu_memory_mib": 90112.0, "gpu_memory_share": 88 / 240, "gpu_busy_share": 0.6}),
        ("1,7,0", {"gpus": 1.0, "gpu_memory_mib": 20480.0, "gpu_memory_share": 0.25, "gpu_busy_share": 0.3}),
        ("", {}),
        ("-1", {}),
    ],
)
def test_the_gpus_that_a_process_may_use_are_told_of(visible: str | None, expected: dict[str, float]) -> None:
    assert GpuUsage(DRIVER, visible)() == pytest.approx(expected)


def test_without_a_driver_there_is_nothing_to_tell() -> None:
    assert GpuUsage(None, None)() == {}


def test_a_machine_without_a_gpu_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.roles.gpu_usage._LIBRARY", "libno-such-driver.so")
    assert own_gpus()() == {}


@pytest.mark.anyio
async def test_every_heartbeat_tells_of_them_whatever_the_worker_writes() -> None:
    subjects = Subjects(RunName("gpus"))
    bus = MemoryBus(subjects)
    async with (
        bus.listen(subjects.everything("heartbeat")) as beats,
        presence(bus, subjects, Role.POLICY, WorkerId("p"), GpuUsage(DRIVER, "0")) as status,
    ):
        status.metrics = {"answered": 1.0}
        with anyio.fail_after(HANGS_S):
            told = (await anext(aiter(beats))).message
    assert isinstance(told, Heartbeat)
    assert (told.metrics["gpu_memory_share"], told.metrics["gpu_busy_share"]) == (0.75, 0.9)
