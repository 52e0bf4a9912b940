"""Adds up what the calls of a judge's models took, and the price of one."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from msgspec import structs

from judges.endpoint.port import Answer
from schemas.errors import ConfigurationError
from schemas.judge_config import Price
from schemas.messages import JudgeCall, StageUsage

_TOKENS_PER_PRICE = 1_000_000
_SUMMED = tuple(name for name in StageUsage.__struct_fields__ if name not in ("stage", "model"))


def cost_of(answer: Answer, price: Price | None) -> float:
    """In the currency of the price; 0 without one. The cached tokens are some of the prompt's."""
    if price is None:
        return 0.0
    cached_price = price.input if price.cached_input is None else price.cached_input
    fresh_tokens = max(answer.prompt_tokens - answer.cached_tokens, 0)
    total = fresh_tokens * price.input + answer.cached_tokens * cached_price + answer.completion_tokens * price.output
    return total / _TOKENS_PER_PRICE


def require_prices(models: Iterable[str], prices: Mapping[str, Price]) -> None:
    """A cost that cannot be counted cannot be limited. Raises `ConfigurationError`."""
    missing = sorted(set(models) - set(prices))
    if missing:
        raise ConfigurationError(
            f"judge_config.max_cost limits what models cost, and there is no price for {', '.join(missing)}: "
            "add it to openai_config.prices, as in {model: {input: 0.5, output: 3.0}}, per million tokens"
        )


def require_tokens(model: str, telling: Collection[str]) -> None:
    """Raises `ConfigurationError` for a model of which no answer said what it took, as its cost cannot be limited."""
    if model not in telling:
        raise ConfigurationError(
            f"judge_config.max_cost limits what models cost, and the endpoint of {model} does not say how many tokens its "
            "answers took: use judge_config.max_calls"
        )


def usage_of(call: JudgeCall) -> StageUsage:
    """Of one answer."""
    return StageUsage(
        stage=call.stage,
        model=call.model,
        num_calls=1,
        num_failures=call.num_failures,
        prompt_tokens=call.prompt_tokens,
        cached_tokens=call.cached_tokens,
        completion_tokens=call.completion_tokens,
        cost=call.cost,
        seconds=call.seconds,
    )


def summed(usages: Iterable[StageUsage]) -> tuple[StageUsage, ...]:
    """By stage and model, in the order in which they first appear."""
    sums: dict[tuple[str, str], StageUsage] = {}
    for usage in usages:
        key = (usage.stage, usage.model)
        sums[key] = _plus(sums[key], usage) if key in sums else usage
    return tuple(sums.values())


def _plus(one: StageUsage, other: StageUsage) -> StageUsage:
    return structs.replace(one, **{name: getattr(one, name) + getattr(other, name) for name in _SUMMED})


@dataclass
class Tally:
    """What one worker's own calls came to, and its requests without an answer, for its heartbeat."""

    num_calls: int = 0
    num_without_verdict: int = 0
    num_failures: int = 0
    num_tokens: int = 0
    cost: float = 0.0

    def add(self, call: JudgeCall) -> None:
        self.num_calls += 1
        self.num_without_verdict += not call.accepted
        self.num_failures += call.num_failures
        self.num_tokens += call.prompt_tokens + call.completion_tokens
        self.cost += call.cost

    def metrics(self) -> dict[str, float]:
        return {
            "calls": float(self.num_calls),
            "answers_without_verdict": float(self.num_without_verdict),
            "failed_requests": float(self.num_failures),
            "tokens": float(self.num_tokens),
            "cost": self.cost,
        }
