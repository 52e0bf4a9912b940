"""Tracks what judges lately said, and what it took: shares over a window of the latest judgements. Pure."""

from collections import Counter, deque
from dataclasses import dataclass, field

from judges.spending import Spending, spending_of
from schemas.messages import Judgement, Split, Verdict

_WINDOW = 256


@dataclass
class Judging:
    """Of one rubric."""

    spending: Spending = field(default_factory=Spending)
    counts: Counter[Verdict] = field(default_factory=Counter)
    _errors: deque[bool] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    _steps: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    """Steps and those that could not be parsed, of training episodes."""

    def apply(self, judgement: Judgement) -> None:
        self.spending += spending_of(judgement)
        self.counts[judgement.verdict] += 1
        self._errors.append(judgement.verdict is Verdict.ERROR)
        trajectory = judgement.trajectory
        if judgement.split is Split.TRAIN and trajectory.num_steps:
            self._steps.append((trajectory.num_steps, trajectory.num_unparsed))

    @property
    def window(self) -> int:
        """Judgements that the shares are of."""
        return len(self._errors)

    @property
    def error_share(self) -> float | None:
        return sum(self._errors) / len(self._errors) if self._errors else None

    @property
    def parse_rate(self) -> float | None:
        """Of the latest training episodes' steps."""
        num_steps = sum(steps for steps, _ in self._steps)
        return 1.0 - sum(unparsed for _, unparsed in self._steps) / num_steps if num_steps else None
