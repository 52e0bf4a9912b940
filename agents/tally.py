"""Counts what a policy worker has done, as metrics for its heartbeat."""

import time
from dataclasses import dataclass, field

from schemas.messages import StepRequest


@dataclass
class Tally:
    """Counted since the worker began."""

    num_answered: int = 0
    num_unparsed: int = 0
    num_refused: int = 0
    num_tokens: int = 0
    load_s: float = 0.0
    """Of the newest version."""
    num_running: int = 0
    """Requests that are with the engine now."""
    answers_s: float = 0.0
    """From the wake-up taken to the answer generated, all together."""
    _told: tuple[int, float] = field(default_factory=lambda: (0, time.monotonic()))
    """Tokens and time of the last heartbeat."""

    def answered(self, step: StepRequest) -> None:
        self.num_answered += 1
        self.num_unparsed += not step.parsed
        self.num_tokens += step.num_completion
        self.answers_s += step.queued_s + step.generated_s

    def metrics(self) -> dict[str, float]:
        """Tokens a second are those since the last time that this was asked for."""
        (num_tokens, at), now = self._told, time.monotonic()
        self._told = (self.num_tokens, now)
        return {
            "tokens_per_s": (self.num_tokens - num_tokens) / max(now - at, 1e-3),
            "answered": float(self.num_answered),
            "refused": float(self.num_refused),
            "unparsed_share": self.num_unparsed / max(self.num_answered, 1),
            "load_s": self.load_s,
            "answer_s": self.answers_s / max(self.num_answered, 1),
            "running": float(self.num_running),
        }
