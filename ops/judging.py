"""Composition of the judges: which parts the judge of a configuration is made of."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from judges.judge import Judge
from judges.programmatic.environment import EnvironmentJudge
from schemas.errors import ConfigurationError

if TYPE_CHECKING:
    from ops.roles import Post


@asynccontextmanager
async def open_judge(post: "Post") -> AsyncIterator[Judge]:
    """The judge that `judge_config.judge` names.

    Raises:
        ConfigurationError: there is no such judge, or the run has no queue for its judgements.
    """
    rubric, rubrics = post.config.judge_config.rubric, post.config.bus_config.rubrics
    if rubric not in rubrics:
        raise ConfigurationError(
            f"judge_config names {rubric}, which has no queue and no permission in this run: "
            f"add it to bus_config.rubrics ({', '.join(rubrics)})"
        )
    yield EnvironmentJudge()
