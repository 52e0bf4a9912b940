"""Judges that reach their run's limit of calls pause and say so; started with a higher one they go on."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from bus.ports import Bus
from bus.topology import trajectory_queue
from ops.roles.running import run_role
from schemas.bus_config import BusConfig
from schemas.ids import WorkerId
from schemas.messages import Heartbeat, Role
from tests.deadlines import HANGS_S
from tests.support.judging.scripted_endpoint import scripted_endpoint
from tests.support.judging.scripted_judging import RUBRIC, SUBJECTS, calls, judgements, judging_run, say, write_all

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
NUM_TRAJECTORIES = 8
MAX_CALLS = 11
NUM_AT_ONCE = 3


async def paused(bus: Bus) -> Heartbeat:
    """The first that counts every call: those under way when the limit was reached are answered later."""
    async with bus.tail(SUBJECTS.heartbeats, SUBJECTS.everything("heartbeat", "judge")) as records:
        async for record in records:
            beat = record.message
            if isinstance(beat, Heartbeat) and beat.state == "paused" and beat.metrics["calls"] >= MAX_CALLS:
                return beat
    raise AssertionError


async def num_judged_at_rest(bus: Bus, config: BusConfig) -> int:
    """As soon as the worker holds as many trajectories as it may, and the others wait."""
    while True:
        num_judged = len(await bus.subjects(SUBJECTS.judged, SUBJECTS.judgements(None)))
        depth = await bus.depth(trajectory_queue(SUBJECTS, config, RUBRIC))
        assert depth is not None
        if (depth.num_in_flight, depth.num_pending) == (NUM_AT_ONCE, NUM_TRAJECTORIES - NUM_AT_ONCE - num_judged):
            return num_judged


async def test_judges_pause_at_the_runs_limit_and_go_on_with_a_higher_one(tmp_path: Path) -> None:
    name = WorkerId("judge-1")
    async with (
        scripted_endpoint(say) as endpoint,
        judging_run(
            tmp_path / "run",
            endpoint.base_url,
            f"judge_config.max_calls={MAX_CALLS}",
            f"env_config.evaluation_workers={NUM_AT_ONCE}",
        ) as (folder, bus),
    ):
        await write_all(bus, NUM_TRAJECTORIES)
        config = folder.load()
        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                group.start_soon(run_role, Role.JUDGE, folder.path, config, name)
                beat = await paused(bus)
                num_judged = await num_judged_at_rest(bus, config.bus_config)
                group.cancel_scope.cancel()
        assert beat.note.startswith(f"{MAX_CALLS} calls were made: raise judge_config.max_calls ({MAX_CALLS}) and start")
        assert beat.metrics["calls"] == len(endpoint.requests) == len(await calls(bus)) == MAX_CALLS
        assert num_judged < NUM_TRAJECTORIES

        raised = replace(config, judge_config=replace(config.judge_config, max_calls=1000))
        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                group.start_soon(run_role, Role.JUDGE, folder.path, raised, name)
                judged = await judgements(bus, NUM_TRAJECTORIES)
                group.cancel_scope.cancel()
        assert all(given.reward is not None for given in judged.values())
        assert len(endpoint.requests) == len(await calls(bus)) == len({request.digest for request in endpoint.requests})
