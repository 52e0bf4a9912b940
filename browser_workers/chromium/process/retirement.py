"""Decides when a browser has served long enough. Values only."""

from dataclasses import dataclass

from browser_workers.chromium.process.memory import machine_mib
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig

_SHARE_OF_MACHINE = 0.5
"""Of the memory there is, for one browser where no bound is configured."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """What one browser may come to before it takes no more episodes."""

    max_age_s: float
    max_episodes: int
    """0: no limit."""
    max_memory_mib: float
    """PSS of the browser with all its processes."""

    @classmethod
    def of(cls, browser_config: BrowserConfig, env_config: EnvConfig) -> "Lifetime":
        return cls(
            max_age_s=env_config.instance_lifetime_max * 60.0,
            max_episodes=browser_config.max_episodes,
            max_memory_mib=browser_config.max_memory_mb or machine_mib() * _SHARE_OF_MACHINE,
        )

    def over(self, *, age_s: float, num_episodes: int, memory_mib: float) -> str:
        """Why it is over, with the figure; empty while it is not."""
        if age_s >= self.max_age_s:
            return f"it is {age_s / 60:.1f} min old"
        if self.max_episodes and num_episodes >= self.max_episodes:
            return f"it has played {num_episodes:,} episodes"
        if memory_mib >= self.max_memory_mib:
            return f"it uses {memory_mib:,.0f} MiB"
        return ""
