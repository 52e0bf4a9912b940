"""The trainer is killed at random moments of one run, again and again: the weights must be those of an undisturbed run.

    python -m benchmarks.trainer_kills                         # 20 kills; about five minutes on two cores
    python -m benchmarks.trainer_kills --objective grpo ppo --kills 20

Real trainer processes on a real nats-server with DeepSpeed and the tiny model. Every version's files are compared by their
SHA-256: weights, optimizer, critic, and what was consumed. Writes results/trainer_kills.json.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from benchmarks.report import RESULTS, Report
from ops.config.recipes import objective_names
from tests.support.drills.trainer_drill import BATCH, MOST_MISSES, Wanted
from tests.support.drills.trainer_kills import Outcome, compare
from tests.support.drills.trainer_moments import Phase

_LIMIT_S = 1200.0
_SPARE_VERSIONS = 6


@dataclass(frozen=True)
class Row:
    objective: str
    killed_while: str
    kills: int
    first_version: int
    """Newest announced version at the first of these kills."""
    last_version: int
    mean_alive_s: float


def rows_of(outcome: Outcome) -> list[Row]:
    rows = []
    for phase in Phase:
        kills = [kill for kill in outcome.kills if kill.phase is phase]
        if kills:
            versions = [kill.version for kill in kills]
            alive = sum(kill.alive_s for kill in kills) / len(kills)
            rows.append(Row(outcome.objective, phase.value, len(kills), min(versions), max(versions), round(alive, 2)))
    return rows


def notes_of(outcome: Outcome) -> list[str]:
    last = outcome.disturbed[-1]
    hashes = {file.path: file.sha256 for file in last.files}
    same = "the same in both runs" if not outcome.different else f"DIFFERENT: {', '.join(outcome.different)}"
    kept = [path for path in hashes if path.endswith(".safetensors") or path.startswith("trainer/")]
    return [
        f"{outcome.objective}: {len(outcome.kills)} kills; every file of versions 1 to {last.version} is {same}",
        f"{outcome.objective}: {last.num_trajectories} judgements used, {outcome.num_used_twice} of them twice",
        *(f"{outcome.objective}: version {last.version} {path} sha256 {hashes[path]}" for path in kept),
    ]


def report(outcomes: Sequence[Outcome]) -> Report:
    return Report(
        name="trainer_kills",
        title="The trainer is killed at random moments of one run",
        rows=[row for outcome in outcomes for row in rows_of(outcome)],
        notes=[
            f"SIGKILL to the trainer, and the next one is started; batches of {BATCH} episodes, each held back for 0.3 s",
            *(note for outcome in outcomes for note in notes_of(outcome)),
        ],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objective", nargs="+", choices=objective_names(), default=["cloning"])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the JSON file (default: %(default)s)")
    options = parser.parse_args()
    outcomes = []
    for objective in options.objective:
        with tempfile.TemporaryDirectory() as folder:
            wanted = Wanted.drawn(options.kills, options.seed)
            num_versions = sum(moment.num_published for moment in wanted) + MOST_MISSES * options.kills + _SPARE_VERSIONS
            outcomes.append(
                anyio.run(
                    lambda: compare(Path(folder), objective, wanted, num_versions=num_versions, limit_s=_LIMIT_S)  # noqa: B023
                )
            )
        report(outcomes).publish(options.out)
    return 0 if all(outcome.holds for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
