"""Runs without Chromium, models and training: how much their stand-ins do, and how fast."""

from dataclasses import dataclass
from typing import Literal

from schemas.requirement import require


@dataclass(frozen=True, kw_only=True)
class SimulationConfig:
    """What the simulated engines do. Everything is drawn from `seed` and the task, so that a task is always the same."""

    seed: int = 0
    """Of everything that is drawn."""
    screenshot_kb: float = 8.0
    """Size of every screenshot, in units of 1,024 bytes."""
    mean_steps: float = 4.0
    """Steps after which a simulated page is done."""
    max_steps: int = 30
    """No page takes more."""
    tail: Literal["none", "exponential", "pareto"] = "exponential"
    """How the numbers of steps and the latencies spread about their means; `pareto` has shape 1.8: a heavy tail."""
    step_latency_ms: float = 0.0
    """Mean time of one browser operation."""
    policy_latency_ms: float = 0.0
    """Mean time of one answer."""
    train_latency_ms: float = 0.0
    """Time of one optimizer step."""
    load_latency_ms: float = 0.0
    """Time in which a policy puts a version in place, and answers nothing."""
    failure_share: float = 0.0
    """Share of the tasks whose page fails at some step."""
    hostile_share: float = 0.0
    """Share of the tasks whose page means harm: its title is no valid text, it raises what nobody expects, or it hangs."""
    wrong_clocks: bool = False
    """Each worker's wall clock is off by what a file in the run's folder says (`millrace chaos`)."""
    success_share: float = 0.5
    """Share of the tasks that end with the full reward."""

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"simulation_config.seed is {self.seed}: write 0 or more")
        require(self.screenshot_kb >= 1, f"simulation_config.screenshot_kb is {self.screenshot_kb}: write 1 or more")
        require(self.mean_steps >= 1, f"simulation_config.mean_steps is {self.mean_steps}: write 1 or more")
        require(self.max_steps >= 1, f"simulation_config.max_steps is {self.max_steps}: write 1 or more")
        for name in ("step_latency_ms", "policy_latency_ms", "train_latency_ms", "load_latency_ms"):
            require(getattr(self, name) >= 0, f"simulation_config.{name} is {getattr(self, name)}: write 0 or more")
        for name in ("failure_share", "hostile_share", "success_share"):
            require(0 <= getattr(self, name) <= 1, f"simulation_config.{name} is {getattr(self, name)}: write 0 to 1")
