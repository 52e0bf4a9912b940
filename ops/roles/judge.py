"""Runs a judge worker, with the judge that the configuration names. What a judge does not need is not loaded."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from bus.background import background
from bus.presence import HEARTBEAT_S, Status
from judges.composition import compose, leaves
from judges.judge import Judge
from judges.registry import find
from judges.worker import JudgeWorker
from ops.run.extras import require_extra
from ops.run.joining import RoleRun
from schemas.errors import ConfigurationError
from schemas.judge_config import JudgeConfig

if TYPE_CHECKING:
    from judges.rubric.prompts import Prompts

RUBRIC = "rubric_v1"
_ANSWERS = ("answer_exact_v1", "answer_numeric_v1", "answer_fuzzy_v1")
OWN_NAMES = ("environment_v1", *_ANSWERS, "milestones_v1", RUBRIC)
"""The judges that come with Millrace."""


async def judge(run: RoleRun) -> None:
    """Judges until it is cancelled or drained."""
    async with open_judge(run) as opened:
        await judge_worker(run, opened).run()


def judge_worker(run: RoleRun, judge: Judge) -> JudgeWorker:
    return JudgeWorker(run.context, run.config, judge=judge)


@asynccontextmanager
async def open_judge(run: RoleRun) -> AsyncIterator[Judge]:
    """The judge that `judge_config.judge` names. A judge that several composites contain is one.

    Raises:
        ConfigurationError: there is no such judge, the run has no queue for its judgements, or something that it needs (a
            package, a key, a prompt, a price) is missing.
    """
    config = run.config.judge_config
    _require_names(config)
    names = leaves(config.judge, config.composites)
    # First of all: who misspelt a judge need not hear of its queue.
    own = {name: _own(name, config) for name in names if name not in OWN_NAMES}
    _require_queue(config.rubric, run.config.bus_config.rubrics)
    async with AsyncExitStack() as stack:
        judges = {name: own[name] if name in own else await stack.enter_async_context(_open(name, run)) for name in names}
        yield compose(config.judge, config.composites, judges)


def _require_queue(rubric: str, rubrics: tuple[str, ...]) -> None:
    if rubric not in rubrics:
        raise ConfigurationError(
            f"this run has no queue for {rubric}, only for {', '.join(rubrics)}: millrace rejudge with the same judge_config "
            "gives it one; a new run has those that bus_config.rubrics lists as its server is started"
        )


def _require_names(config: JudgeConfig) -> None:
    for name in config.composites:
        if name in OWN_NAMES:
            raise ConfigurationError(
                f"judge_config.composites: {name} is a judge of Millrace: give the composite another name"
            )


@asynccontextmanager
async def _open(name: str, run: RoleRun) -> AsyncIterator[Judge]:
    """One of `OWN_NAMES`."""
    if name == RUBRIC:
        async with _open_rubric(run) as judge:
            yield judge
    else:
        yield _programmatic(name)


def _own(name: str, config: JudgeConfig) -> Judge:
    """A judge of a person's own. Raises `ConfigurationError`."""
    within = next((f"composites.{each}.parts" for each, made in config.composites.items() if name in made.parts), "judge")
    setting = "judge_config.judge" if name == config.judge else f"judge_config.{within}"
    return find(name, config.modules, taken=(*OWN_NAMES, *config.composites), setting=setting)


def _programmatic(name: str) -> Judge:
    from judges.programmatic.answer import ANSWER_JUDGES
    from judges.programmatic.environment import EnvironmentJudge
    from judges.programmatic.milestones import MilestonesJudge

    if name == "answer_fuzzy_v1":
        require_extra("rapidfuzz", "judge")
    return next(judge for judge in (EnvironmentJudge(), MilestonesJudge(), *ANSWER_JUDGES) if judge.name == name)


@asynccontextmanager
async def _open_rubric(run: RoleRun) -> AsyncIterator[Judge]:
    require_extra("openai", "judge")
    from judges.endpoint.opening import open_endpoints
    from judges.rubric.budget import open_budget
    from judges.rubric.journal import Journal
    from judges.rubric.judge import RubricJudge
    from judges.rubric.session import RecordedSessions

    config = run.config.judge_config
    prompts = _prompts(config)
    async with (
        open_endpoints(run.config.openai_config, os.environ) as endpoints,
        open_budget(run.context.bus, run.context.subjects, config, run.context.status) as budget,
    ):
        sessions = RecordedSessions(
            endpoints=endpoints,
            journal=Journal(run.context.bus, run.context.subjects, rubric=config.rubric, worker=run.context.worker),
            budget=budget,
            config=run.config.openai_config,
            status=run.context.status,
        )

        def waiting() -> str:
            return "; ".join(dict.fromkeys(filter(None, (endpoint.waiting for endpoint in endpoints.values()))))

        async with background(partial(_tell, run.context.status, waiting)):
            yield RubricJudge(sessions, prompts, config)


async def _tell(status: Status, waiting: Callable[[], str]) -> None:
    """Says with every heartbeat what the endpoints keep the judge waiting for; a pause says more, and stays."""
    while True:
        if status.state != "paused":
            status.note = waiting()
        await anyio.sleep(HEARTBEAT_S)


def _prompts(config: JudgeConfig) -> "Prompts":
    from judges.rubric.prompts import committed_prompts, load_prompts

    return load_prompts(Path(config.prompts)) if config.prompts else committed_prompts(RUBRIC)
