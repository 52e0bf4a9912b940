"""`frozen_lake:lake?seed=<n>`: over the ice to the flag, past the holes."""

from collections.abc import Mapping
from dataclasses import dataclass

from browser_workers.grids.level import Playing
from browser_workers.grids.oracle import cell
from browser_workers.grids.query import Query
from browser_workers.grids.suite import GridSuite
from browser_workers.suites import suite
from browser_workers.suites.frozen_lake.lake import Lake, distances, draw_lake
from browser_workers.suites.frozen_lake.planning import best_moves

NAME, PAGE = "frozen_lake", "lake"


@dataclass(frozen=True, slots=True)
class LakeLevel:
    """Satisfies `browser_workers.grids.level.Level`."""

    lake: Lake
    playing: Playing
    hole_reward: float
    approach_reward: float
    """Of every cell nearer to the flag."""

    legend = "@ you, _ ice, O hole, G flag"

    @property
    def num_moves(self) -> float:
        return self.lake.num_moves / (1 - self.lake.slip)

    @property
    def goal(self) -> str:
        asked = "Walk over the frozen lake to the flag without falling into a hole."
        if not self.lake.slip:
            return asked
        return f"{asked} The ice is slippery: {self.lake.slip:.0%} of all moves go to a side instead."

    def facts(self) -> Mapping[str, object]:
        lake = self.lake
        return {
            "size": lake.size,
            "holes": sorted(lake.holes),
            "start": lake.start,
            "goal": lake.goal,
            "slides": lake.slides,
            "holeReward": self.hole_reward,
            "approachReward": self.approach_reward,
            "away": self._away() if self.approach_reward else [],
        }

    def _away(self) -> list[int]:
        """By cell, its moves to the flag; 0 where there is no way."""
        away = distances(self.lake.size, self.lake.holes, self.lake.goal)
        return [away.get(cell, 0) for cell in range(self.lake.size**2)]

    def best_move(self, state: Mapping[str, object]) -> int | None:
        return best_moves(self.lake).get(cell(state, "player"))


def read_lake(query: Query) -> LakeLevel:
    """Raises `UnknownWebsite`."""
    seed, size = query.seed(), query.whole("size", 4, 3, 8)
    lake = draw_lake(
        seed,
        size=size,
        holes=query.share("holes", 0.2, 0.5),
        slip=query.share("slip", 0.0, 0.9),
        min_moves=query.whole("min_moves", size, 1, 2 * (size - 1)),
    )
    return LakeLevel(lake, Playing.read(query), query.reward("hole_reward"), query.reward("approach_reward"))


@suite(NAME)
class FrozenLakeSuite(GridSuite):
    def __init__(self) -> None:
        super().__init__(NAME, PAGE, read_lake)
