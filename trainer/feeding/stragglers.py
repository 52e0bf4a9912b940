"""Decides when the unfinished rest of a synchronous batch is to be cancelled. Pure: counts and times in."""

from dataclasses import dataclass

from schemas.env_config import EnvConfig
from trainer.feeding.curriculum import stragglers_due


@dataclass
class StragglerClock:
    """Runs from when enough of a batch has ended."""

    env: EnvConfig
    began_at: float | None = None

    def due(self, ended: int, now: float) -> bool:
        """`ended`: episodes of the present batch; `now`: seconds of any steady clock."""
        batch, threshold = self.env.train_tasks_rollout_size, self.env.completion_threshold
        if not batch * threshold <= ended < batch:
            self.began_at = None
            return False
        self.began_at = now if self.began_at is None else self.began_at
        return stragglers_due(
            ended=ended,
            batch=batch,
            threshold=threshold,
            since_s=now - self.began_at,
            grace_s=self.env.completion_grace_period,
        )
