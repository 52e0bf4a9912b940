"""What one step costs on the bus: observation published -> action received, with no time spent on a policy.

    python -m benchmarks.bus_overhead [--steps 300] [--json bus_overhead.json]

One process plays the browser, another the policy, over a server of their own. In the same run, a plain NATS request with the
same picture and an answer of the same size shows how much of it is the network and the client library.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import anyio
from nats.aio.client import Client
from nats.aio.msg import Msg
from rich.console import Console
from rich.table import Table

from bus import chain
from bus.chain import EpisodeChain
from bus.codec import encode
from bus.companions import companions
from bus.handoff import Handoff
from bus.jetstream import JetStreamBus, connect, create_topology
from bus.ports import WorkQueue
from bus.server import address_of, nats_server
from bus.settlement import settle
from bus.subjects import Subjects
from bus.topology import shared_queues, step_queue, streams
from schemas.config import BusConfig
from schemas.ids import EpisodeId, GroupId, PolicyVersion, RunName, TaskId, WorkerId
from schemas.messages import (
    Action,
    ActionKind,
    AnyMessage,
    Observation,
    Picture,
    Split,
    StepRequest,
    StepWake,
    Task,
)

RUN = RunName("bench")
SUBJECTS = Subjects(RUN)
CONFIG = BusConfig(run=RUN)
PLAIN = "bench-plain.request"
POLICY = WorkerId("policy")
SIZES_KB = (128, 400)
NUM_TOKENS = 1500
WARM_UP = 20


@dataclass(frozen=True)
class Row:
    """Milliseconds a step; processor milliseconds of the browser's side a step."""

    path: str
    picture_kb: int
    p50_ms: float
    p99_ms: float
    cpu_ms: float


def _row(path: str, picture_kb: int, seconds: list[float], cpu_s: float) -> Row:
    kept = sorted(seconds[WARM_UP:])
    p99 = kept[min(len(kept) - 1, int(0.99 * len(kept)))]
    return Row(path, picture_kb, 1e3 * statistics.median(kept), 1e3 * p99, 1e3 * cpu_s / len(seconds))


def _task(name: str) -> Task:
    return Task(
        run=RUN,
        episode=EpisodeId(f"train-r0000-{name}-m0"),
        group=GroupId("g"),
        task=TaskId("t"),
        split=Split.TRAIN,
        index=0,
        policy_version=PolicyVersion(0),
        instruction="measure",
        website="none",
        max_steps=1,
    )


def _answer(wake: StepWake) -> StepRequest:
    return StepRequest(
        episode=wake.episode,
        attempt=wake.attempt,
        step=wake.step,
        action=Action(kind=ActionKind.CLICK, point=(1.0, 2.0)),
        parsed=True,
        response="click",
        prompt_tokens=tuple(range(NUM_TOKENS)),
        completion_tokens=tuple(range(100)),
        logprobs=(-0.5,) * 100,
    )


async def _play(bus: JetStreamBus, picture_kb: int, num_steps: int, *, sticky: bool) -> Row:
    """`sticky`: steps are offered to the worker that answered last, as all but an episode's first are; else queued for any."""
    task = _task(f"p{picture_kb}-{'sticky' if sticky else 'any'}")
    await chain.admit(bus, SUBJECTS, task)
    owned = await EpisodeChain.take(bus, SUBJECTS, task, WorkerId("browser"))
    assert isinstance(owned, EpisodeChain)
    picture = Picture(data=os.urandom(picture_kb * 1000), media_type="image/jpeg", width=1280, height=768)
    seconds, cpu = list[float](), time.process_time()
    async with bus.listen(SUBJECTS.live(task.episode, owned.attempt)) as actions:
        for step in range(num_steps):
            seen = Observation(
                episode=task.episode,
                attempt=owned.attempt,
                step=step,
                picture=picture,
                url="",
                title="",
            )
            began = time.perf_counter()
            seq = await owned.observe(seen)
            wake = StepWake(episode=task.episode, attempt=owned.attempt, step=step, observation_seq=seq)
            if sticky:
                assert await bus.offer(SUBJECTS.wake(POLICY), wake, timeout_s=5)
            else:
                await bus.append(SUBJECTS.steps, SUBJECTS.step_any(Split.TRAIN, task.episode, owned.attempt, step), wake)
            record = await anext(actions)
            seconds.append(time.perf_counter() - began)
            owned.answered(record.seq)
    return _row("chain, offered" if sticky else "chain, queued", picture_kb, seconds, time.process_time() - cpu)


async def _answer_steps(bus: JetStreamBus, queue: WorkQueue) -> None:
    async with bus.work(queue, prefetch=0) as inbox:
        async for delivery in inbox:
            async with settle(bus, delivery, POLICY):
                await _answer_step(bus, delivery.message)


async def _answer_offers(bus: JetStreamBus) -> None:
    taken = Handoff[AnyMessage]()

    def take(message: AnyMessage) -> bool:
        taken.put(message)
        return True

    async with bus.offers(SUBJECTS.wake(POLICY), take):
        print("ready", flush=True)
        async for message in taken:
            await _answer_step(bus, message)


async def _answer_step(bus: JetStreamBus, wake: AnyMessage) -> None:
    assert isinstance(wake, StepWake)
    seen = await chain.last(bus, SUBJECTS, wake.episode)
    assert seen is not None
    assert seen.seq == wake.observation_seq
    await chain.answer(bus, SUBJECTS, wake.observation_seq, _answer(wake))


async def _plain_client(folder: Path) -> Client:
    address = address_of(folder)
    client = Client()
    await client.connect(address.url, nkeys_seed_str=address.nkey_seed)
    return client


async def _policy(folder: Path) -> None:
    """The other process: answers steps from the chain, and plain requests."""
    client = await _plain_client(folder)

    async def respond(message: Msg) -> None:
        wake = StepWake(episode=EpisodeId("e"), attempt=1, step=0, observation_seq=0)
        await message.respond(encode(_answer(wake)))

    await client.subscribe(PLAIN, cb=respond)
    await client.flush()
    async with (
        connect(address_of(folder), SUBJECTS, CONFIG, name="policy") as bus,
        companions(partial(_answer_steps, bus, step_queue(SUBJECTS, CONFIG, Split.TRAIN))),
    ):
        await _answer_offers(bus)


async def _ask_plainly(folder: Path, picture_kb: int, num_steps: int) -> Row:
    client = await _plain_client(folder)
    picture = os.urandom(picture_kb * 1000)
    seconds, cpu = list[float](), time.process_time()
    for _ in range(num_steps):
        began = time.perf_counter()
        await client.request(PLAIN, picture, timeout=5)
        seconds.append(time.perf_counter() - began)
    await client.close()
    return _row("plain request", picture_kb, seconds, time.process_time() - cpu)


async def _measure(num_steps: int) -> list[Row]:
    rows = list[Row]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with nats_server(folder) as address, connect(address, SUBJECTS, CONFIG, name="browser") as bus:
            await create_topology(bus, streams(SUBJECTS, CONFIG), shared_queues(SUBJECTS, CONFIG, ()))
            command = [sys.executable, "-m", "benchmarks.bus_overhead", "--policy", name]
            async with await anyio.open_process(command, stderr=None) as policy:
                assert policy.stdout is not None
                await policy.stdout.receive()
                for picture_kb in SIZES_KB:
                    rows.append(await _ask_plainly(folder, picture_kb, num_steps))
                    for sticky in (True, False):
                        rows.append(await _play(bus, picture_kb, num_steps, sticky=sticky))
                policy.kill()
    return rows


def _show(rows: list[Row]) -> None:
    table = Table(title="Bus overhead of one step")
    for column in ("path", "picture KB", "p50 ms", "p99 ms", "CPU ms (browser side)"):
        table.add_column(column, justify="left" if column == "path" else "right")
    for row in rows:
        table.add_row(row.path, str(row.picture_kb), f"{row.p50_ms:.2f}", f"{row.p99_ms:.2f}", f"{row.cpu_ms:.2f}")
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Bus overhead of one step.")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--policy", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.policy is not None:
        anyio.run(_policy, options.policy, backend_options={"use_uvloop": True})
        return
    rows = anyio.run(_measure, options.steps, backend_options={"use_uvloop": True})
    _show(rows)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
