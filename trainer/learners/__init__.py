"""Learners, one a file: what an iteration makes of its judged episodes.

The loop collects, gates, publishes and resumes; a learner decides what is trained on and towards what. What it remembers from
one iteration to the next stands in `TrainerState`, so that a trainer that was killed continues as if it had never stopped.
"""

from collections.abc import Sequence
from typing import Protocol

from schemas.ids import PolicyVersion
from schemas.messages import Judgement
from trainer.episodes.consumption import BatchPlan
from trainer.episodes.intake import IsLast, Judged
from trainer.training_metrics import PhaseClock
from trainer.versions.checkpoints import TrainerState


class Learner(Protocol):
    """Lives as long as the trainer."""

    def wants(self, judgement: Judgement) -> bool:
        """Whether the episode's steps are to be fetched ahead of their turn."""
        ...

    def begin(self) -> IsLast:
        """Begins an iteration: says when it has its judgements."""
        ...

    async def take_in(
        self, batch: Sequence[Judged], plan: BatchPlan, version: PolicyVersion, *, ends_pass: bool
    ) -> dict[str, float]:
        """Takes an iteration's judgements in, all that `begin` heard; returns metrics. `ends_pass`: no more come before the
        stored episodes begin anew."""
        ...

    async def train(self, version: PolicyVersion, clock: PhaseClock) -> dict[str, float]:
        """Trains what was taken in, from `version` to the next; returns metrics."""
        ...

    def remember(self, state: TrainerState) -> TrainerState:
        """The state with what this learner needs after a restart."""
        ...
