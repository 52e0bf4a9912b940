"""What a judge is: a finished trajectory in, a ruling out."""

from dataclasses import dataclass
from typing import Protocol

from schemas.messages import StageVerdict, Trajectory, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What one judge found. `reward` is None exactly when nothing may be trained on the trajectory."""

    verdict: Verdict
    reward: float | None
    stages: tuple[StageVerdict, ...] = ()
    step_rewards: tuple[float, ...] = ()
    error: str = ""

    def __post_init__(self) -> None:
        scored = self.verdict in (Verdict.SUCCESS, Verdict.FAILURE)
        assert scored == (self.reward is not None), f"{self.verdict} with reward {self.reward}"


def excluded(reason: str) -> Ruling:
    """The episode did not come to an end that can be judged."""
    return Ruling(verdict=Verdict.EXCLUDED, reward=None, error=reason)


def undecided(reason: str) -> Ruling:
    """No verdict could be had, after every retry."""
    return Ruling(verdict=Verdict.ERROR, reward=None, error=reason)


class Judge(Protocol):
    """Scores finished trajectories."""

    @property
    def rubric(self) -> str:
        """Name and version, as one subject token; part of every judgement's identity."""
        ...

    async def judge(self, trajectory: Trajectory) -> Ruling:
        """Rules on a trajectory whose outcome is finished.

        Raises:
            JudgeError: no verdict could be had; the worker tries again later. Never a reward of zero instead.
        """
        ...
