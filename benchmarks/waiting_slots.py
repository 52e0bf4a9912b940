"""What slots cost while they wait for an answer: the server's processor, and that of the two ends.

    python -m benchmarks.waiting_slots

Once a policy worker has every step in hand and says so when it is asked; once there is none, and every slot looks at its chain
and queues its step again. Figures for ten thousand slots are these, times twenty: the load is in proportion.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import psutil

from benchmarks.report import RESULTS, Report
from browser_workers.asking import Asking
from bus import chain
from bus.chain import EpisodeChain
from bus.jetstream import JetStreamBus, connect, create_topology
from bus.ports import Bus
from bus.server import nats_server
from bus.subjects import Subjects
from bus.topology import shared_queues, streams
from schemas.browser_config import BrowserConfig
from schemas.bus_config import BusConfig
from schemas.ids import RunName, WorkerId
from schemas.messages import AnyMessage, Observation, Screenshot
from tests.builders import task

_SLOTS, _SECONDS, _MANY = 500, 15.0, 10_000
_CONFIG = BusConfig(run=RunName("waiting"))
_NAMES = Subjects(_CONFIG.run)
_POLICY, _BROWSER = WorkerId("policy-1"), WorkerId("browser-1")
_SCREENSHOT = Screenshot(data=bytes(50_000), media_type="image/jpeg", width=1280, height=768)


@dataclass(frozen=True)
class Row:
    waits_for: str
    slots: int
    asked_per_s: float
    """Questions, or resends."""
    server_cpu: float
    """Cores."""
    ends_cpu: float
    """Of all slots and the policy worker together, which are one process here."""
    server_cpu_at_10000: float


async def _waiting(bus: Bus, index: int, *, held: bool) -> None:
    of = task(f"t{index}")
    await chain.admit(bus, _NAMES, of)
    owned = await EpisodeChain.take(bus, _NAMES, of, _BROWSER)
    assert isinstance(owned, EpisodeChain)
    seen = Observation(episode=of.episode, attempt=1, step=0, screenshot=_SCREENSHOT, url="http://site/", title="page")
    async with bus.listen(_NAMES.live(of.episode, 1)) as answers:
        seq = await owned.observe(seen)
        asking = Asking(bus=bus, subjects=_NAMES, chain=owned, resend_s=BrowserConfig().resend_s)
        asking.policy = _POLICY if held else None
        await asking.answer(0, seq, answers)


@asynccontextmanager
async def _policy(bus: JetStreamBus, accept: Callable[[AnyMessage], bool], *, is_there: bool) -> AsyncIterator[None]:
    if not is_there:
        yield
        return
    async with bus.offers(_NAMES.wake(_POLICY), accept):
        yield


async def _measure(*, held: bool) -> Row:
    num_asked = 0

    def accept(_: AnyMessage) -> bool:
        nonlocal num_asked
        num_asked += 1
        return True

    with tempfile.TemporaryDirectory() as name:
        async with (
            nats_server(Path(name)) as address,
            connect(address, _NAMES, _CONFIG, name="slots") as slots,
            connect(address, _NAMES, _CONFIG, name="policy") as policy,
        ):
            await create_topology(slots, streams(_NAMES, _CONFIG), shared_queues(_NAMES, _CONFIG, _CONFIG.rubrics))
            (server,) = psutil.Process().children(recursive=True)
            async with _policy(policy, accept, is_there=held), anyio.create_task_group() as group:
                for index in range(_SLOTS):
                    group.start_soon(partial(_waiting, slots, index, held=held))
                await anyio.sleep(8.0)
                before, asked, began = _spent(server), num_asked, time.monotonic()
                await anyio.sleep(_SECONDS)
                seconds = time.monotonic() - began
                server_cpu, ends_cpu = ((now - then) / seconds for now, then in zip(_spent(server), before, strict=True))
                rate = (num_asked - asked) / seconds if held else _SLOTS / BrowserConfig().resend_s
                group.cancel_scope.cancel()
    waits_for = "a policy that has the step" if held else "any policy, none is there"
    return Row(waits_for, _SLOTS, rate, server_cpu, ends_cpu, server_cpu * _MANY / _SLOTS)


def _spent(server: psutil.Process) -> tuple[float, float]:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return sum(server.cpu_times()[:2]), own.ru_utime + own.ru_stime


async def _rows() -> list[Row]:
    return [await _measure(held=held) for held in (True, False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows = anyio.run(_rows, backend_options={"use_uvloop": True})
    Report(name="waiting_slots", title="Slots that wait", rows=rows).publish(options.out)


if __name__ == "__main__":
    main()
