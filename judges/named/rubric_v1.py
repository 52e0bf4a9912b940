"""The judge that asks models about screenshots: which are evidence, whether the site blocked, whether all facts are shown."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio

from bus.background import background
from bus.presence import HEARTBEAT_S, Status
from judges.judge import Judge
from judges.named import JudgeOpening, opened_judge
from schemas.extras import require_extra

NAME = "rubric_v1"


@opened_judge(NAME, asks_models=True)
@asynccontextmanager
async def rubric_v1(opening: JudgeOpening) -> AsyncIterator[Judge]:
    require_extra("openai", "judge")
    from judges.endpoint.opening import open_endpoints
    from judges.rubric.budget import open_budget
    from judges.rubric.journal import Journal
    from judges.rubric.judge import RubricJudge
    from judges.rubric.prompts import committed_prompts, load_prompts
    from judges.rubric.session import RecordedSessions

    context, config = opening.context, opening.config
    prompts = load_prompts(Path(config.prompts)) if config.prompts else committed_prompts(NAME)
    async with (
        open_endpoints(opening.openai, os.environ) as endpoints,
        open_budget(context.bus, context.subjects, config, context.status) as budget,
    ):
        sessions = RecordedSessions(
            endpoints=endpoints,
            journal=Journal(context.bus, context.subjects, rubric=config.rubric, worker=context.worker),
            budget=budget,
            config=opening.openai,
            status=context.status,
        )

        def waiting() -> str:
            return "; ".join(dict.fromkeys(filter(None, (endpoint.waiting for endpoint in endpoints.values()))))

        async with background(partial(_tell, context.status, waiting)):
            yield RubricJudge(sessions, prompts, config)


async def _tell(status: Status, waiting: Callable[[], str]) -> None:
    """Says with every heartbeat what the endpoints keep the judge waiting for; a pause says more, and stays."""
    while True:
        if status.state != "paused":
            status.note = waiting()
        await anyio.sleep(HEARTBEAT_S)
