"""Whether a worker that is only slow loses its episodes: nobody is killed, and busy loops take the machine's processors.

    python -m benchmarks.false_takeovers [--leases 30,8,1] [--episodes 1000] [--load 8] [--browser playwright]

Every attempt beyond an episode's first is a takeover from a worker that was alive. The baselines are the lease that a run had
before (30 s), and leases so short that they show what the figure looks like when it is not 0.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from benchmarks.report import RESULTS, Report
from ops.audit.ledger import Kind, read_ledger
from ops.audit.waits import Waiting, waits
from ops.run.folder import RunFolder
from ops.run.logs import quiet_logs
from ops.simulation.material import ensure_demo_task_file
from schemas.bus_config import BusConfig
from schemas.messages import Role
from tests.support.drills.simulated_run import simulated_run

_LIMIT_S = 3000.0
_CREW = {Role.BROWSER: 2, Role.POLICY: 1, Role.JUDGE: 1}
_SLOTS = {"simulated": 32, "playwright": 2}
_COMMON = (
    "env_config.train_difficulty_max_steps={easy: 5, medium: 5, hard: 5}",
    "feeder_config.num_iterations=1",
    "simulation_config.policy_latency_ms=1000",
)
_PAGES = {
    "simulated": ("simulation_config.mean_steps=4", "simulation_config.step_latency_ms=300"),
    "playwright": (
        "browser_config.engine=playwright",
        "browser_config.viewport_width=160",
        "browser_config.viewport_height=210",
        "env_config.operation_timeout=60",
    ),
}


@dataclass(frozen=True)
class Row:
    browser: str
    lease_s: float
    load: int
    """Busy loops beside the run."""
    episodes: int
    seconds: float
    takeovers: int
    """All of them false: nobody was killed."""
    failed: int
    """Episodes that ended without having been played to their end."""
    answer_max_s: float
    """The longest wait for an answer: how slow the run itself was."""


@contextmanager
def busy_loops(number: int) -> Iterator[None]:
    """Processes that use all the processor time they get."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()


async def measure(browser: str, lease_s: float, load: int, episodes: int) -> Row:
    overrides = (
        f"env_config.train_tasks_rollout_size={episodes}",
        f"feeder_config.max_concurrent={episodes}",
        f"env_config.server_size={_SLOTS[browser]}",
        f"bus_config.task_ack_wait_s={lease_s}",
        *_COMMON,
        *_PAGES[browser],
    )
    with tempfile.TemporaryDirectory() as name:
        if browser == "playwright":
            ensure_demo_task_file(RunFolder(Path(name)).tasks / "train.jsonl", num_tasks=episodes)
        async with simulated_run(Path(name), overrides, _CREW) as run:
            with busy_loops(load):
                await run.play(_LIMIT_S)
            ledger = await read_ledger(run.bus, run.subjects)
    answers = [wait.seconds for wait in waits(ledger, run.config.bus_config.trained_rubric) if wait.what is Waiting.ANSWER]
    links = [link for chain in ledger.chains.values() for link in chain]
    return Row(
        browser=browser,
        lease_s=lease_s,
        load=load,
        episodes=len(ledger.chains),
        seconds=run.seconds,
        takeovers=sum(link.kind is Kind.START and link.attempt > 1 for link in links),
        failed=sum(not ruled.finished for ruled in ledger.ruled),
        answer_max_s=max(answers),
    )


async def _rows(browser: str, leases: Sequence[float], load: int, episodes: int) -> list[Row]:
    return [await measure(browser, lease_s, load, episodes) for lease_s in leases]


@quiet_logs()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leases", default=f"30,{BusConfig().task_ack_wait_s:g},1,0.2", help="seconds (default: %(default)s)")
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--load", type=int, default=8, help="busy loops beside the run (default: %(default)s)")
    parser.add_argument("--browser", choices=sorted(_SLOTS), default="simulated")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    leases = [float(lease) for lease in options.leases.split(",")]
    rows = anyio.run(_rows, options.browser, leases, options.load, options.episodes, backend_options={"use_uvloop": True})
    Report(
        name=f"false_takeovers_{options.browser}",
        title="Takeovers from workers that were alive",
        rows=rows,
        notes=("nobody was killed: a takeover is an episode that a slow worker lost",),
    ).publish(options.out)


if __name__ == "__main__":
    main()
