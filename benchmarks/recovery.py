"""How long anybody waits for a worker or a server that is gone: one of each is killed (SIGKILL) in the midst of a run.

    python -m benchmarks.recovery

The baseline, in the same way, is a worker that is stopped cleanly (SIGTERM) and hands back what it holds. Leases are the
defaults. All times are those at which the server stored the records, on this machine's clock.
"""

import argparse
import os
import signal
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import anyio
from matplotlib.axes import Axes

from benchmarks.report import BASELINE, OURS, RESULTS, TARGET, Report
from ops.audit.feed import Feed
from ops.audit.ledger import Ledger, read_ledger
from ops.audit.promises import check
from ops.audit.waits import Waiting, waits
from ops.run.logs import quiet_logs
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.messages import Role
from tests.support.drills.simulated_run import SimulatedRun, simulated_run

_LEASES = BusConfig()
_CREW = {Role.BROWSER: 2, Role.POLICY: 2, Role.JUDGE: 1}
_SLOTS = 32
_EPISODES = 160
_LIMIT_S = 300.0
_SECOND_ANSWER_S = 2.7
"""From the end of one episode until the next one in its slot waits for its second answer."""
_OVERRIDES = (
    f"env_config.train_tasks_rollout_size={_EPISODES}",
    f"env_config.server_size={_SLOTS // 2}",
    "env_config.train_difficulty_max_steps={easy: 30, medium: 30, hard: 30}",
    "feeder_config.num_iterations=1",
    f"feeder_config.max_concurrent={_EPISODES}",
    f"bus_config.task_ack_wait_s={_LEASES.task_ack_wait_s}",
    f"bus_config.step_ack_wait_s={_LEASES.step_ack_wait_s}",
    f"bus_config.judge_ack_wait_s={_LEASES.judge_ack_wait_s}",
    "simulation_config.tail=none",
    "simulation_config.mean_steps=5",
    "simulation_config.step_latency_ms=300",
    "simulation_config.policy_latency_ms=1000",
)


@dataclass(frozen=True)
class Scenario:
    gone: str
    how: str
    """SIGKILL or SIGTERM."""
    waiting: Waiting | None
    """None: everybody waits, for the next record of any chain."""
    bound_s: float
    before_s: float | None
    """The longest wait as it was measured at commit 1ebeeb6; None: nobody had."""
    num_servers: int = 1
    num_shards: int = 1


@dataclass(frozen=True)
class Row:
    gone: str
    how: str
    waited_for: str
    affected: int
    """Waits that were open when it happened."""
    p50_s: float
    max_s: float
    before_s: float | None
    bound_s: float
    lost: int
    duplicates: int


SCENARIOS = (
    Scenario("browser-1", "SIGTERM", Waiting.TAKEOVER, _LEASES.task_ack_wait_s, 5.7),
    Scenario("browser-1", "SIGKILL", Waiting.TAKEOVER, _LEASES.task_ack_wait_s, 27.4),
    Scenario("policy-1", "SIGTERM", Waiting.ANSWER, 5.0, 3.6),
    Scenario("policy-1", "SIGKILL", Waiting.ANSWER, 5.0, 3.6),
    Scenario("nats-server", "SIGKILL", None, 10.0, 1.5),
    Scenario("leader of three", "SIGTERM", None, 3.0, None, num_servers=3),
    Scenario("leader of three", "SIGKILL", None, 10.0, 10.4, num_servers=3),
    Scenario("leader of three, 3 shards", "SIGKILL", None, 3.0, None, num_servers=3, num_shards=3),
)


async def measure(scenario: Scenario) -> Row:
    with tempfile.TemporaryDirectory() as name:
        replicas = f"bus_config.replicas={3 if scenario.num_servers == 3 else 1}"
        shards = f"bus_config.num_shards={scenario.num_shards}"
        async with simulated_run(Path(name), (*_OVERRIDES, replicas, shards), _CREW, num_servers=scenario.num_servers) as run:
            at = await _disturbed(run, scenario)
            ledger = await read_ledger(run.bus, run.subjects)
    seconds = sorted(_stall(ledger, at) if scenario.waiting is None else _waited(ledger, run.config, scenario.waiting, at))
    found = check(ledger, feed=Feed.of(run.config))
    return Row(
        gone=scenario.gone,
        how=scenario.how,
        waited_for=scenario.waiting.value if scenario.waiting else "any record",
        affected=len(seconds),
        p50_s=seconds[len(seconds) // 2] if seconds else 0.0,
        max_s=max(seconds, default=0.0),
        before_s=scenario.before_s,
        bound_s=scenario.bound_s,
        lost=len(found.unfinished) + len(found.unpublished) + len(found.unjudged),
        duplicates=found.num_duplicates,
    )


async def _disturbed(run: SimulatedRun, scenario: Scenario) -> float:
    """Plays to the end, with the fault in the middle; returns when it happened, in unix seconds."""
    times: list[float] = []

    async def disturb() -> None:
        await _in_full_swing(run)
        pid = await _pid(run, scenario.gone)
        times.append(time.time())
        if scenario.num_servers > 1:
            os.kill(pid, signal.Signals[scenario.how])
        elif scenario.how == "SIGTERM":
            await run.roles.supervisor.stop(scenario.gone)
        else:
            os.kill(pid, signal.SIGKILL)

    async with anyio.create_task_group() as group:
        group.start_soon(disturb)
        await run.play(_LIMIT_S)
    return times[0]


async def _in_full_swing(run: SimulatedRun) -> None:
    async with run.bus.tail(run.subjects.trajectories, run.subjects.everything("trajectory")) as ended:
        async for record in ended:
            if record.seq >= _EPISODES // 3:
                await anyio.sleep(_SECOND_ANSWER_S)
                return


async def _pid(run: SimulatedRun, gone: str) -> int:
    match gone:
        case "nats-server":
            pid = run.servers.pid("server-1")
        case "leader of three" | "leader of three, 3 shards":
            pid = run.servers.pid(await run.servers.leader() or "")
        case worker:
            pid = run.roles.supervisor.pid(worker)
    if pid is None:
        raise LookupError(f"{gone} is not up")
    return pid


def _waited(ledger: Ledger, config: Config, what: Waiting, at: float) -> Iterable[float]:
    """How long the waits that were open went on after the fault.

    A takeover always is: the last answer to a dead worker may come after its end.
    """
    every = waits(ledger, config.bus_config.trained_rubric)
    found = (wait for wait in every if wait.what is what and wait.ended_s > at)
    return (wait.ended_s - at for wait in found if what is Waiting.TAKEOVER or wait.began_s <= at)


def _stall(ledger: Ledger, at: float) -> Iterable[float]:
    """The longest time in which no chain grew, from then on."""
    later = sorted(link.time_s for chain in ledger.chains.values() for link in chain if link.time_s > at)
    return (max(after - before for before, after in pairwise([at, *later])),)


def _draw(rows: Sequence[Row], axes: Axes) -> None:
    names = [f"{row.gone}, {row.how}" for row in rows]
    bars = axes.barh(names, [row.max_s for row in rows], color=[OURS if row.how == "SIGKILL" else BASELINE for row in rows])
    axes.plot([row.bound_s for row in rows], names, "|", color=TARGET, markersize=18, label="bound")
    axes.bar_label(bars, [f"{row.max_s:.1f} s" for row in rows], label_type="center", color="white", fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("longest wait after the fault, seconds")
    axes.legend(frameon=False, loc="lower right")


async def _rows(scenarios: Iterable[Scenario]) -> list[Row]:
    return [await measure(scenario) for scenario in scenarios]


@quiet_logs()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gone", default="", help="only scenarios with this victim")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    chosen = [scenario for scenario in SCENARIOS if scenario.gone.startswith(options.gone)]
    rows = anyio.run(_rows, chosen, backend_options={"use_uvloop": True})
    Report(
        name="recovery",
        title="Waits for what is gone",
        rows=rows,
        notes=(
            "a killed browser worker hands back what it held when it is started again, and its tasks wait for a free slot",
        ),
        draw=partial(_draw, rows),
    ).publish(options.out)


if __name__ == "__main__":
    main()
