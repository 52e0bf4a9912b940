"""Configures where metrics of training go, and how many sampled episodes beside them."""

from dataclasses import dataclass
from typing import Literal

from schemas.requirement import require


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    run_name: str = ""
    """Of the wandb run, and its id: one of this name is continued. Empty: the run's name on the bus."""
    wandb_key_env_var: str = "WANDB_API_KEY"
    """Environment variable that holds the key; without it wandb writes its files offline."""
    wandb_mode: Literal["auto", "online", "offline", "disabled"] = "auto"
    """`auto`: online with a key, offline without."""
    project_name: str = "millrace"
    """Of the wandb run."""
    entity_name: str = ""
    """Of the wandb run: a user or team; empty: the key's own."""
    table_every: int = 10
    """Versions from one page of sampled episodes to the next; 0: none."""
    table_episodes: int = 6
    """Episodes of the batch on such a page, half of them successes where there are any."""
    keep_tables: int = 20
    """Latest pages kept in the run's folder."""
    last_evaluation_s: float = 1800.0
    """A trainer that has finished waits so long for the evaluations that are still being played, to log them."""

    def __post_init__(self) -> None:
        for name in ("table_every", "last_evaluation_s"):
            require(getattr(self, name) >= 0, f"log_config.{name} is {getattr(self, name)}: write 0 or more")
        for name in ("table_episodes", "keep_tables"):
            require(getattr(self, name) >= 1, f"log_config.{name} is {getattr(self, name)}: write 1 or more")
