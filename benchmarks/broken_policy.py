"""What a policy node that cannot load any version costs the others: episodes a second with it and without it.

    python -m benchmarks.broken_policy [--repeats 2]

Whole asynchronous runs with a staleness bound of 1, real role processes around simulated pages, answers and training. The
baseline, in the same run, is the crew without the broken node; runs of the two take turns.
"""

import argparse
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import anyio

from benchmarks.report import RESULTS, Report
from ops.run.logs import quiet_logs
from ops.simulation.broken_weights import broken_weights
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint, Judgement, Role, ServedVersion, ServingState
from tests.support.drills.simulated_run import SimulatedRun, simulated_run

_BROKEN = "policy-2"
_VERSIONS, _BATCH = 10, 30
_LIMIT_S = 400.0
_OVERRIDES = (
    "feeder_config.mode=async",
    "feeder_config.max_staleness=1",
    f"feeder_config.num_iterations={_VERSIONS}",
    f"env_config.train_tasks_rollout_size={_BATCH}",
    "env_config.server_size=64",
    "simulation_config.step_latency_ms=50",
    "simulation_config.policy_latency_ms=50",
)


@dataclass(frozen=True)
class Row:
    policies: str
    episodes: int
    seconds: float
    episodes_per_s: float
    versions: int
    stale: int
    """Episodes that were left out of training for their age."""
    answers_by_version: str
    """Of training episodes: the broken node could answer as version 0 alone."""
    broken_node_says: str


async def measure(*, broken: bool) -> Row:
    with tempfile.TemporaryDirectory() as name, ExitStack() as damage:
        folder = Path(name) / "run"
        folder.mkdir()
        if broken:
            damage.enter_context(broken_weights(folder, _BROKEN))
        crew = {Role.BROWSER: 1, Role.POLICY: 1 + broken, Role.JUDGE: 1, Role.TRAINER: 1}
        async with simulated_run(folder, _OVERRIDES, crew) as run:
            await run.play(_LIMIT_S)
            return await _row(run, "one sound, one broken" if broken else "one sound")


async def _row(run: SimulatedRun, policies: str) -> Row:
    names = run.subjects
    versions = [record.message for record in await run.bus.history(names.checkpoints, names.everything("checkpoint"))]
    judged = [record.message for record in await run.bus.history(names.judged, names.everything("judged"))]
    stale = sum(int(each.metrics.get("discarded_stale", 0)) for each in versions if isinstance(each, Checkpoint))
    answers = Counter(version for each in judged if isinstance(each, Judgement) for version in each.trajectory.versions)
    said = await run.bus.last(names.served, f"{names.run}.served.{_BROKEN}")
    return Row(
        policies=policies,
        episodes=len(judged),
        seconds=run.seconds,
        episodes_per_s=len(judged) / run.seconds,
        versions=len(versions) - 1,
        stale=stale,
        answers_by_version=", ".join(str(answers[PolicyVersion(version)]) for version in range(_VERSIONS)),
        broken_node_says=_shown(said.message) if said is not None and isinstance(said.message, ServedVersion) else "",
    )


def _shown(said: ServedVersion) -> str:
    return (
        f"{said.state.value}: {said.version}, wants {said.wanted}" if said.state is ServingState.UNABLE else said.state.value
    )


async def main(repeats: int) -> Report:
    rows = [await measure(broken=broken) for _ in range(repeats) for broken in (False, True)]
    return Report(
        name="broken_policy",
        title="A policy node that cannot load any version, beside one that can",
        rows=rows,
        notes=("the broken node takes no steps once another serves a newer version, and admission does not count it",),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    with quiet_logs():
        report = anyio.run(main, options.repeats, backend_options={"use_uvloop": True})
    report.publish(options.out)
