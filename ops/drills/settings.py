"""Holds a drill's settings: the run that is played, and the faults that happen to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ops.config.loading import load_config
from ops.drills.faults import FaultKind
from schemas.config import Config
from schemas.messages import Role

_SIZES = (100, 50, 25, 20, 10, 5, 1)
NUM_TEST_TASKS = 20
_AGES = ("bus_config.steps_max_age_s=6", "bus_config.heartbeats_max_age_s=6", "bus_config.advisories_max_age_s=6")
"""What is proved is kept; all the rest ages out again and again."""
_EVAL_EVERY = 50
"""Versions, at the most."""
_ENDLESS = 1_000_000
"""Episodes, where time ends the run."""
_EMBEDDED = tuple(kind for kind in FaultKind if kind not in (FaultKind.KILL_LEADER, FaultKind.KILL_CHROMIUM))
_CLUSTER = tuple(kind for kind in FaultKind if kind not in (FaultKind.KILL_CHROMIUM, FaultKind.CUT, FaultKind.BLACKHOLE))


@dataclass(frozen=True, kw_only=True)
class DrillSettings:
    folder: Path
    num_episodes: int = 5000
    """Training episodes; evaluation comes on top."""
    num_servers: int = 1
    seed: int = 0
    fault_interval_s: float = 2.0
    """Mean time between two faults."""
    kinds: Sequence[FaultKind] = ()
    """Empty: all that can happen to such a run."""
    browser: Literal["simulated", "playwright"] = "simulated"
    duration_s: float | None = None
    """Seconds after which the run comes to its end, as one that was configured for so many versions; None: it plays
    `num_episodes`."""
    limit_s: float = 1800.0
    """Seconds after which the drill is given up, beyond `duration_s`."""
    settle_s: float = 120.0
    """Seconds that everything which was begun has to end in, once faults are over."""
    overrides: Sequence[str] = ()

    @property
    def batch(self) -> int:
        """Episodes a version: at least ten versions, where there are episodes for them."""
        planned = self.planned
        return next(size for size in _SIZES if planned % size == 0 and (planned >= 10 * size or size == 1))

    @property
    def planned(self) -> int:
        """Training episodes that the run is begun for; where time ends it, more than there is time for."""
        return self.num_episodes if self.duration_s is None else _ENDLESS

    @property
    def num_iterations(self) -> int:
        return self.planned // self.batch

    @property
    def possible(self) -> tuple[FaultKind, ...]:
        """The kinds of fault that are meant, as far as such a run knows them."""
        known = _EMBEDDED if self.num_servers == 1 else _CLUSTER
        if self.browser == "playwright":
            known = (*known, FaultKind.KILL_CHROMIUM)
        return tuple(kind for kind in known if not self.kinds or kind in self.kinds)

    @property
    def crew(self) -> Mapping[Role, int]:
        """Processes of each role: nobody is the only one of his kind, except the trainer, of whom a run has one."""
        return {Role.FEEDER: 2, Role.BROWSER: 2, Role.POLICY: 2, Role.JUDGE: 2, Role.TRAINER: 1}

    def config(self) -> Config:
        simulated = self.browser == "simulated"
        pages = (
            [
                "simulation_config.failure_share=0.02",
                "simulation_config.hostile_share=0.02",
                "simulation_config.tail=pareto",
            ]
            if simulated
            else [
                "browser_config.engine=playwright",
                "browser_config.suites=['ops.simulation.hostility:hostile']",
                "browser_config.viewport_width=160",
                "browser_config.viewport_height=210",
                "env_config.server_size=2",
                "simulation_config.policy_latency_ms=2000",
                "env_config.operation_timeout=20",
                "env_config.train_difficulty_max_steps={easy: 5, medium: 5, hard: 5}",
                "env_config.test_difficulty_max_steps={easy: 5, medium: 5, hard: 5}",
            ]
        )
        config = load_config(
            "simulation",
            [
                "bus_config.run=chaos",
                f"bus_config.replicas={1 if self.num_servers == 1 else 3}",
                f"env_config.train_tasks_rollout_size={self.batch}",
                f"feeder_config.num_iterations={self.num_iterations}",
                f"feeder_config.eval_every={min(max(1, self.num_iterations // 2), _EVAL_EVERY)}",
                f"feeder_config.seed={self.seed}",
                "feeder_config.lease_s=3",
                f"simulation_config.seed={self.seed}",
                "env_config.server_size=64",
                "feeder_config.max_concurrent=512",
                "feeder_config.max_staleness=10",
                "simulation_config.step_latency_ms=20",
                "simulation_config.policy_latency_ms=40",
                "simulation_config.wrong_clocks=true",
                *_AGES,
                *pages,
                *self.overrides,
            ],
        )
        return replace(config, save_path=str(self.folder), data_path=str(self.folder))
