"""The picture of the monitor in docs/monitor.md: `python -m benchmarks.monitor_picture` plays a simulated run on this
machine, watches it with a monitor of its own, and draws what it shows in the middle of
the run, as soon as there is no alert, to docs/monitor.svg.
"""

import argparse
import io
import tempfile
from pathlib import Path

import anyio
from rich.console import Console

from ops.monitor.screen.frame import Shown, frame
from ops.monitor.state import MonitorState
from ops.monitor.watch import monitoring
from ops.run.folder import RunFolder
from ops.simulation.material import ensure_task_file
from schemas.messages import Role
from tests.support.drills.simulated_run import simulated_run

_CREW = {Role.BROWSER: 2, Role.POLICY: 2, Role.JUDGE: 1, Role.TRAINER: 1}
_NUM_VERSIONS = 12
_SHOWN_VERSION = 5
_OVERRIDES = (
    "feeder_config.mode=async",
    "bus_config.run=simulation",
    "env_config.server_size=24",
    "env_config.train_tasks_rollout_size=96",
    "env_config.test_tasks_rollout_size=60",
    f"feeder_config.num_iterations={_NUM_VERSIONS}",
    "feeder_config.eval_every=5",
    "feeder_config.max_concurrent=64",
    "simulation_config.step_latency_ms=600",
    "simulation_config.policy_latency_ms=900",
)
_LIMIT_S = 900.0


async def picture(width: int, height: int) -> str:
    """SVG."""
    with tempfile.TemporaryDirectory() as name:
        ensure_task_file(RunFolder(Path(name)).tasks / "test.jsonl", num_tasks=60)
        async with simulated_run(Path(name), _OVERRIDES, _CREW) as run, monitoring(run.bus, run.subjects, run.config) as watch:
            run.roles.start(Role.FEEDER)
            with anyio.fail_after(_LIMIT_S):
                await watch.wait_until(lambda state: not watch.alerts and _is_worth_a_picture(state))
            shown = Shown(state=watch.state, alerts=watch.alerts, config=run.config, now=watch.now())
            console = Console(width=width, height=height, record=True, file=io.StringIO())
            console.print(frame(shown, width, height))
            return console.export_svg(title="millrace monitor")


def _is_worth_a_picture(state: MonitorState) -> bool:
    """There are a curve, versions, and a second held-out round."""
    rounds = list(state.run.evaluations.items())
    return state.version >= _SHOWN_VERSION and bool(rounds) and rounds[-1][0] > 0 and rounds[-1][1].num_judged > 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/monitor.svg"))
    parser.add_argument("--width", type=int, default=140, help="columns of the terminal")
    parser.add_argument("--height", type=int, default=44, help="its lines")
    options = parser.parse_args()
    options.out.write_text(anyio.run(picture, options.width, options.height), encoding="utf-8")


if __name__ == "__main__":
    main()
