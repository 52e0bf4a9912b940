"""The trainer is killed at random moments of one run, again and again: the weights must be those of an undisturbed run.

    python -m benchmarks.trainer_kills                         # 20 kills; about five minutes on two cores
    python -m benchmarks.trainer_kills --objective grpo ppo --kills 20

Real trainer processes on a real nats-server with DeepSpeed and the tiny model. Every version's files are compared by their
SHA-256: weights, optimizer, critic, and what was consumed. Writes results/trainer_kills.json.
"""

import argparse
import itertools
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from benchmarks.report import RESULTS, Report
from benchmarks.trainer_drill import BATCH, MOST_MISSES, Drill, Kill, Wanted, opened
from benchmarks.trainer_moments import Phase
from benchmarks.trainer_process import stop_forking
from ops.config.recipes import objective_names
from schemas.messages import Checkpoint
from tests import tiny_models

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


@dataclass(frozen=True)
class Outcome:
    """Of two runs on the same judgements."""

    objective: str
    undisturbed: Sequence[Checkpoint]
    disturbed: Sequence[Checkpoint]
    kills: Sequence[Kill]

    @property
    def different(self) -> list[str]:
        """Files that are not the same in both runs, as `version/path`; version 0 is the same folder."""
        found = [
            f"{one.version}/{file.path}"
            for one, other in zip(self.undisturbed, self.disturbed, strict=True)
            for file in one.files
            if file not in other.files
        ]
        return found + [
            f"{one.version}/{file.path}"
            for one, other in zip(self.disturbed, self.undisturbed, strict=True)
            for file in one.files
            if file.path not in {known.path for known in other.files}
        ]

    @property
    def num_used_twice(self) -> int:
        """Judgements in more than one version: each version ends behind the one before, and counts what lies between."""
        ranges = [(one.judged_seq, other.judged_seq) for one, other in itertools.pairwise(self.disturbed)]
        used = [seq for begin, end in ranges for seq in range(begin + 1, end + 1)]
        counted = self.disturbed[-1].num_trajectories
        return len(used) - len(set(used)) + abs(counted - len(set(used)))

    @property
    def holds(self) -> bool:
        return not self.different and self.num_used_twice == 0

    def rows(self) -> list[Row]:
        rows = []
        for phase in Phase:
            kills = [kill for kill in self.kills if kill.phase is phase]
            if kills:
                versions = [kill.version for kill in kills]
                alive = sum(kill.alive_s for kill in kills) / len(kills)
                rows.append(Row(self.objective, phase.value, len(kills), min(versions), max(versions), round(alive, 2)))
        return rows

    def notes(self) -> list[str]:
        last = self.disturbed[-1]
        hashes = {file.path: file.sha256 for file in last.files}
        same = "the same in both runs" if not self.different else f"DIFFERENT: {', '.join(self.different)}"
        kept = [path for path in hashes if path.endswith(".safetensors") or path.startswith("trainer/")]
        return [
            f"{self.objective}: {len(self.kills)} kills; every file of versions 1 to {last.version} is {same}",
            f"{self.objective}: {last.num_trajectories} judgements used, {self.num_used_twice} of them twice",
            *(f"{self.objective}: version {last.version} {path} sha256 {hashes[path]}" for path in kept),
        ]


async def compare(folder: Path, objective: str, wanted: Sequence[Wanted], *, num_versions: int, limit_s: float) -> Outcome:
    """An undisturbed run and one with the `wanted` kills, side by side."""
    base = tiny_models.build(folder / "base", seed=1)
    found: dict[str, list[Checkpoint]] = {}
    drills: dict[str, Drill] = {}

    async def run(name: str, kills: Sequence[Wanted]) -> None:
        async with opened(folder / name, base, objective=objective, num_versions=num_versions) as drill:
            drills[name] = drill
            found[name] = await drill.run(kills, limit_s=limit_s)

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(run, "undisturbed", ())
            group.start_soon(run, "disturbed", wanted)
    finally:
        stop_forking()
    return Outcome(objective, found["undisturbed"], found["disturbed"], drills["disturbed"].kills)


def report(outcomes: Sequence[Outcome]) -> Report:
    return Report(
        name="trainer_kills",
        title="The trainer is killed at random moments of one run",
        rows=[row for outcome in outcomes for row in outcome.rows()],
        notes=[
            f"SIGKILL to the trainer, and the next one is started; batches of {BATCH} episodes, each held back for 0.3 s",
            *(note for outcome in outcomes for note in outcome.notes()),
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
