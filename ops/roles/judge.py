"""Runs a judge worker, with the judge that the configuration names. What a judge does not need is not loaded."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from judges.composition import compose, leaves
from judges.judge import Judge
from judges.named import JudgeOpening, open_named
from judges.worker import JudgeWorker
from ops.run.joining import RoleRun
from schemas.errors import ConfigurationError


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
    opening = JudgeOpening(run.context, config, run.config.openai_config)
    _require_queue(config.rubric, run.config.bus_config.rubrics)
    async with AsyncExitStack() as stack:
        judges = {
            name: await stack.enter_async_context(open_named(name, opening))
            for name in leaves(config.judge, config.composites)
        }
        yield compose(config.judge, config.composites, judges)


def _require_queue(rubric: str, rubrics: tuple[str, ...]) -> None:
    if rubric not in rubrics:
        raise ConfigurationError(
            f"this run has no queue for {rubric}, only for {', '.join(rubrics)}: millrace rejudge with the same judge_config "
            "gives it one; a new run has those that bus_config.rubrics lists as its server is started"
        )
