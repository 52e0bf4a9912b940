"""How full and how busy GPUs are, read from a stand-in of the driver's library; and nothing where there is none."""

import anyio
import pytest

from bus.memory import MemoryBus
from bus.presence import presence
from bus.subjects import Subjects
from ops.roles.gpu_usage import GpuUsage, own_gpus
from schemas.ids import RunName, WorkerId
from schemas.messages import Heartbeat, Role
from tests.deadlines import HANGS_S
from tests.support.gpu_driver import DRIVER


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
    monkeypatch.setattr("ops.roles.nvml._LIBRARY", "libno-such-driver.so")
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
