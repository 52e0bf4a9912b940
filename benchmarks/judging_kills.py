"""What a killed judge worker costs: the calls that are made twice, with the journal, and without what stood in it."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
from nats.aio.client import Client

from benchmarks.judge_worker import judge_worker
from benchmarks.judged_episodes import REASONING, Kind, ended, noise, schema_name_of, verdict_word
from benchmarks.report import Report
from bus.server import address_of
from ops.run.folder import RunFolder
from tests.support.judging.endpoint_replies import Said, verdict
from tests.support.judging.endpoint_requests import Asked
from tests.support.judging.scripted_endpoint import ScriptedEndpoint, scripted_endpoint
from tests.support.judging.scripted_judging import SUBJECTS, judgements, judging_run

_NUM_TRAJECTORIES: Final = 24
_NUM_SCREENSHOTS: Final = 12
_AT_ONCE: Final = 8
_KILLED_AT: Final = 240
"""Requests that have arrived, of 408 in all: the second eight trajectories are under way."""
_LATENCY_S: Final = 0.05
_ACK_WAIT_S: Final = 2.0
_LIMIT_S: Final = 90.0
_KEPT, _EMPTIED = "with the journal", "without it"


@dataclass(frozen=True)
class Row:
    path: str
    kills: int
    trajectories: int
    judged_at_kill: int
    under_way_at_kill: int
    """Trajectories that had been begun."""
    calls: int
    repeated_calls: int
    """Questions that were put again although they had been put before."""
    repeated_tokens: int


async def measure() -> list[Row]:
    return [await _killed(path) for path in (_EMPTIED, _KEPT)]


def report(rows: Sequence[Row]) -> Report:
    return Report(
        name="judging_kills",
        title="A judge worker is killed",
        rows=rows,
        notes=(
            f"{_AT_ONCE} trajectories of {_NUM_SCREENSHOTS} screenshots at once, an endpoint that answers after "
            f"{1000 * _LATENCY_S:.0f} ms, SIGKILL at request {_KILLED_AT}; what it held comes back after {_ACK_WAIT_S:g} s",
            f"{_EMPTIED}: the same program, but the stream CALLS is emptied before the next worker starts",
        ),
    )


async def _killed(path: str) -> Row:
    episodes = [ended(Kind.SUCCESS, each, _NUM_SCREENSHOTS, noise(1)) for each in range(_NUM_TRAJECTORIES)]
    overrides = (
        f"env_config.evaluation_workers={_AT_ONCE}",
        f"bus_config.judge_ack_wait_s={_ACK_WAIT_S}",
        "openai_config.model=late",
    )
    with tempfile.TemporaryDirectory() as name:
        async with (
            scripted_endpoint(_say_late) as endpoint,
            judging_run(Path(name), endpoint.base_url, *overrides) as (folder, bus),
        ):
            for episode in episodes:
                await episode.write_chain(bus, SUBJECTS)
            async with judge_worker(folder, bus, "judge-1") as first:
                for episode in episodes:
                    await episode.publish(bus, SUBJECTS)
                with anyio.fail_after(_LIMIT_S):
                    await endpoint.arrived(_KILLED_AT)
                first.kill()
                await first.wait()
            num_judged = sum((await bus.subjects(SUBJECTS.judged, SUBJECTS.judgements(None))).values())
            begun = {subject.split(".")[-3] for subject in await bus.subjects(SUBJECTS.calls, SUBJECTS.everything("call"))}
            if path == _EMPTIED:
                await _empty_calls(folder)
            async with judge_worker(folder, bus, "judge-2"):
                with anyio.fail_after(_LIMIT_S):
                    await judgements(bus, _NUM_TRAJECTORIES)
        return _row(path, endpoint, num_judged, len(begun) - num_judged)


async def _say_late(asked: Asked) -> Said:
    await anyio.sleep(_LATENCY_S)
    return verdict(reasoning=REASONING, verdict=verdict_word(schema_name_of(asked.body), asked.text))


async def _empty_calls(folder: RunFolder) -> None:
    address = address_of(folder.server)
    client = Client()
    await client.connect(address.url, nkeys_seed_str=address.nkey_seed, inbox_prefix=address.inbox_prefix.encode())
    try:
        await client.jetstream().purge_stream(SUBJECTS.calls)
    finally:
        await client.close()


def _row(path: str, endpoint: ScriptedEndpoint, num_judged: int, num_under_way: int) -> Row:
    asked = set[str]()
    repeated = []
    for request in endpoint.requests:
        if request.digest in asked:
            repeated.append(request)
        asked.add(request.digest)
    return Row(
        path=path,
        kills=1,
        trajectories=_NUM_TRAJECTORIES,
        judged_at_kill=num_judged,
        under_way_at_kill=num_under_way,
        calls=len(endpoint.requests),
        repeated_calls=len(repeated),
        repeated_tokens=sum(request.usage.prompt_tokens for request in repeated),
    )
