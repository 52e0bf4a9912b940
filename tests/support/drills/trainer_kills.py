"""Two runs on the same judgements, in one of which the trainer is killed: every version's files have to be the same."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from schemas.messages import Checkpoint
from tests.support.agents import tiny_models
from tests.support.drills.trainer_drill import Drill, Kill, Wanted, opened
from tests.support.drills.trainer_process import stop_forking


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
