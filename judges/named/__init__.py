"""Judges that a configuration can name, one a file.

    @judge("right_price_v1")
    def right_price(episode: JudgedEpisode) -> bool:
        return episode.trajectory.answer == "12.90"

A judge is a function, a class that is made without arguments, or what opens one that needs connections. Its name is stored
with its judgements and says the version: one that judges differently has another.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar, overload

from bus.context import WorkerContext
from judges.function_judge import FunctionJudge, JudgingFunction
from judges.judge import Judge
from schemas.extensions import JUDGES
from schemas.judge_config import JudgeConfig, OpenAIConfig


@dataclass(frozen=True)
class JudgeTraits:
    asks_models: bool = False
    """It asks the endpoints of `openai_config`."""


@dataclass(frozen=True)
class JudgeOpening:
    """What a judge may need to be opened."""

    context: WorkerContext
    config: JudgeConfig
    openai: OpenAIConfig


OpensJudge = Callable[[JudgeOpening], AbstractAsyncContextManager[Judge]]
_Class = TypeVar("_Class", bound=type[Judge])


class _Declares(Protocol):
    @overload
    def __call__(self, made: _Class) -> _Class: ...
    @overload
    def __call__(self, made: JudgingFunction) -> FunctionJudge: ...


def judge(name: str) -> _Declares:
    """Declares a judge: a class, which gets this name, or a function that becomes one.

    The function takes an episode and returns True, False, a reward from 0 to 1, or a `Ruling`; it may be `async`.
    """

    def declare(made: type[Judge] | JudgingFunction) -> object:
        if isinstance(made, type):
            setattr(made, "name", name)  # noqa: B010 - the protocol has it on instances
            return JUDGES.declare(name, made, JudgeTraits())
        return JUDGES.declare(name, FunctionJudge(name, made), JudgeTraits())

    return declare  # type: ignore[return-value]


def opened_judge(name: str, *, asks_models: bool = False) -> Callable[[OpensJudge], OpensJudge]:
    """Declares what opens a judge of that name, and closes it behind the last episode."""
    return lambda opens: JUDGES.declare(name, opens, JudgeTraits(asks_models=asks_models))


@asynccontextmanager
async def open_named(name: str, opening: JudgeOpening) -> AsyncIterator[Judge]:
    """Raises `ConfigurationError` where there is no such judge, or something that it needs is missing."""
    made = JUDGES.find(name).made
    if isinstance(made, FunctionJudge):
        yield made
    elif isinstance(made, type):
        yield made()
    else:
        async with made(opening) as opened:
            yield opened
