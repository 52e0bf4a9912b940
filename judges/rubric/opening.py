"""Opens what a judge that asks models needs: endpoints, the record of their answers, the run's budget."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import anyio

from bus.background import background
from bus.presence import HEARTBEAT_S, Status
from judges.endpoint.opening import open_endpoints
from judges.named import JudgeOpening
from judges.rubric.budget import open_budget
from judges.rubric.journal import Journal
from judges.rubric.session import RecordedSessions


@asynccontextmanager
async def open_sessions(opening: JudgeOpening) -> AsyncIterator[RecordedSessions]:
    """Raises `ConfigurationError` where an address, a key or a price is missing."""
    context, config = opening.context, opening.config
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
            yield sessions


async def _tell(status: Status, waiting: Callable[[], str]) -> None:
    """Says with every heartbeat what the endpoints keep the judge waiting for; a pause says more, and stays."""
    while True:
        if status.state != "paused":
            status.note = waiting()
        await anyio.sleep(HEARTBEAT_S)
