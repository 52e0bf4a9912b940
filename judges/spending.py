"""Adds up what judgements took: model calls, tokens, cost and time."""

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.messages import Judgement


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Of some judgements; costs in the currency of `openai_config.prices`."""

    num_judgements: int = 0
    num_calls: int = 0
    """Answers of models."""
    num_failures: int = 0
    """Requests without an answer."""
    prompt_tokens: int = 0
    """The cached ones included."""
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    judged_s: float = 0.0

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(**{name: value + getattr(other, name) for name, value in vars(self).items()})

    @property
    def cached_share(self) -> float | None:
        """Of the prompt tokens; None: there were none."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None

    @property
    def cost_each(self) -> float | None:
        return self.cost / self.num_judgements if self.num_judgements else None

    @property
    def seconds_each(self) -> float | None:
        """Between taking a trajectory and ruling on it."""
        return self.judged_s / self.num_judgements if self.num_judgements else None


def spending_of(judgement: Judgement) -> Spending:
    usage = judgement.usage
    return Spending(
        num_judgements=1,
        num_calls=sum(stage.num_calls for stage in usage),
        num_failures=sum(stage.num_failures for stage in usage),
        prompt_tokens=sum(stage.prompt_tokens for stage in usage),
        cached_tokens=sum(stage.cached_tokens for stage in usage),
        completion_tokens=sum(stage.completion_tokens for stage in usage),
        cost=sum(stage.cost for stage in usage),
        judged_s=judgement.judged_s,
    )


def spent(judgements: Iterable[Judgement]) -> Spending:
    return sum(map(spending_of, judgements), Spending())


def spending_rows(spending: Spending) -> tuple[tuple[str, str], ...]:
    """Names and figures for a table; of models only where one was asked."""
    seconds = ("seconds of judging", f"{spending.judged_s:.2f}, {spending.seconds_each or 0.0:.4f} a trajectory")
    if not spending.num_calls and not spending.num_failures:
        return (seconds,)
    cached = spending.cached_share
    of_them = "" if cached is None else f" ({cached:.0%} cached)"
    return (
        ("model calls", f"{spending.num_calls:,}, {spending.num_failures:,} requests without an answer"),
        ("tokens", f"{spending.prompt_tokens:,} in{of_them}, {spending.completion_tokens:,} out"),
        ("cost", f"{spending.cost:.4f}, {spending.cost_each or 0.0:.6f} a trajectory"),
        seconds,
    )
