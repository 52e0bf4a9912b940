"""How busy the slots are: makespan of heavy-tailed episodes against the list-scheduling bound and synchronous collectors.

    python -m benchmarks.utilisation [--episodes 1024] [--slots 64]

Every latency is drawn beforehand (Pareto, shape 1.8, pages and policy alike), so the same episodes can be scheduled on paper:
greedily, without any overhead (the bound), and with the barriers of synchronous collectors, also without overhead.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from matplotlib.axes import Axes

from benchmarks.report import BASELINE, OURS, RESULTS, TARGET, Report
from browser_workers.suites import resolve
from ops.audit.ledger import Kind, Link, read_ledger
from ops.planning.schedules import Episode, duration, episode_synchronous, list_schedule, step_synchronous
from ops.run.logs import quiet_logs
from ops.simulation.browser import NAME, Script, SimulatedSuite
from ops.simulation.draws import generator, spread
from schemas.messages import Role, Task
from schemas.simulation_config import SimulationConfig
from tests.support.drills.simulated_run import SimulatedRun, simulated_run

_BROWSERS = 2
_LIMIT_S = 580.0


@dataclass(frozen=True)
class Row:
    collector: str
    makespan_s: float
    share_of_bound: float
    slots_busy: float
    """Share of slots x makespan that goes into the episodes' own latencies."""
    slower_than_millrace: float


def latencies(task: Task, config: SimulationConfig) -> Episode:
    """What the simulation will draw for this episode, one pair (page, policy) a step; the last action stands alone."""
    url = resolve(task.website, {NAME: SimulatedSuite()}).url
    pages = generator(config.seed, url, "latency")

    def operation() -> float:
        return spread(pages, config.step_latency_ms, config.tail) / 1000.0

    def answer(step: int) -> float:
        return spread(generator(config.seed, task.episode, step), config.policy_latency_ms, config.tail) / 1000.0

    steps = [(operation() + operation(), answer(step)) for step in range(Script.of(url, config).num_steps)]
    return [*steps, (operation(), 0.0)]


def overrides(num_episodes: int, num_slots: int) -> list[str]:
    return [
        f"env_config.train_tasks_rollout_size={num_episodes}",
        f"env_config.server_size={num_slots // _BROWSERS}",
        "env_config.train_difficulty_max_steps={easy: 30, medium: 30, hard: 30}",
        "feeder_config.num_iterations=1",
        f"feeder_config.max_concurrent={num_episodes}",
        f"policy_config.max_num_seqs={2 * num_slots}",
        "browser_config.eval_share=0",
        "bus_config.task_ack_wait_s=30",
        "simulation_config.tail=pareto",
        "simulation_config.mean_steps=6",
        "simulation_config.max_steps=30",
        "simulation_config.step_latency_ms=250",
        "simulation_config.policy_latency_ms=500",
        "simulation_config.screenshot_kb=128",
    ]


async def measure(num_episodes: int, num_slots: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        crew = {Role.BROWSER: _BROWSERS, Role.POLICY: 1, Role.JUDGE: 1}
        async with simulated_run(Path(name), overrides(num_episodes, num_slots), crew) as run:
            await run.play(_LIMIT_S)
            episodes = await admitted(run)
            chains = (await read_ledger(run.bus, run.subjects)).chains
    began = min(_time(chain, Kind.START) for chain in chains.values())
    makespan = max(_time(chain, Kind.DONE) for chain in chains.values()) - began
    bound = list_schedule(episodes, num_slots)
    work = sum(map(duration, episodes))
    schedules = {
        "list-scheduling bound": bound,
        "millrace": makespan,
        "synchronous, a barrier a batch": episode_synchronous(episodes, num_slots),
        "synchronous, a barrier per step": step_synchronous(episodes, num_slots),
    }
    return [
        Row(collector, seconds, bound / seconds, work / (num_slots * seconds), seconds / makespan)
        for collector, seconds in schedules.items()
    ]


async def admitted(run: SimulatedRun) -> list[Episode]:
    """The episodes' latencies in the order in which they were admitted."""
    found: list[Task] = []
    for shard in range(run.subjects.num_shards):
        stream, tasks = run.subjects.episodes(shard), run.subjects.chains(shard, "task")
        found += [record.message for record in await run.bus.history(stream, tasks) if isinstance(record.message, Task)]
    return [latencies(task, run.config.simulation_config) for task in sorted(found, key=lambda task: task.index)]


def _time(chain: Sequence[Link], kind: Kind) -> float:
    return next(link.time_s for link in chain if link.kind is kind)


def _draw(rows: Sequence[Row], axes: Axes) -> None:
    colours = [TARGET, OURS, BASELINE, BASELINE]
    bars = axes.barh([row.collector for row in rows], [row.makespan_s for row in rows], color=colours)
    axes.bar_label(bars, [f"{row.makespan_s:,.0f} s" for row in rows], padding=4)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("makespan, seconds")


@quiet_logs()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=1024)
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows = anyio.run(measure, options.episodes, options.slots, backend_options={"use_uvloop": True})
    Report(
        name="utilisation",
        title=f"{options.episodes:,} heavy-tailed episodes on {options.slots} slots",
        rows=rows,
        notes=(
            "targets: at least 97 % of the bound, at least 5x faster than a synchronous collector",
            "bound and synchronous collectors are computed from the same latencies, without any overhead",
        ),
        draw=partial(_draw, rows),
    ).publish(options.out)


if __name__ == "__main__":
    main()
