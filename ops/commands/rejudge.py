"""Judges every stored trajectory of a run by another judge, beside the old judgements, until the queue is empty."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec

from bus.context import WorkerContext
from bus.presence import presence
from bus.topology import trajectory_queue
from ops.analysis.rejudging.admission import admit, require_admissible, with_rubric
from ops.analysis.rejudging.display import report_table, summary
from ops.analysis.rejudging.draining import Remaining, wait_empty
from ops.analysis.rejudging.progress import shown
from ops.analysis.rejudging.report import Rejudged, ended_episodes, read_report
from ops.commands.arguments import add_overrides, add_run_dir
from ops.commands.execution import interruptible, worker_name
from ops.console.terminal import Console
from ops.roles.judge import judge_worker, open_judge
from ops.run.folder import RunFolder
from ops.run.joining import RoleRun, join, subjects_of
from ops.run.served import served
from schemas.ids import WorkerId
from schemas.messages import Role

EXAMPLE = """\
millrace rejudge --run-dir runs/mine judge_config.judge=rubric_v1
millrace rejudge --run-dir runs/mine judge_config.judge=rubric_v1 \\
    judge_config.label=large openai_config.model=large-model"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_dir(parser)
    add_overrides(parser)
    parser.set_defaults(name=None)


@interruptible
async def run(options: argparse.Namespace) -> int:
    """Returns 0 when every trajectory has a judgement. The run's own server is started for the while when it is not up."""
    return await rejudge_run(options.run_dir.resolve(), options.overrides, WorkerId(worker_name(options)))


async def rejudge_run(run_dir: Path, overrides: Sequence[str], worker: WorkerId) -> int:
    """Returns 0 when every trajectory has a judgement. The run's own server is started for the while when it is not up."""
    folder = RunFolder(run_dir)
    stored, config = folder.load(), folder.load(overrides)
    rubric = config.judge_config.rubric
    require_admissible(config.bus_config, rubric)
    config = with_rubric(config, rubric)
    subjects = subjects_of(config)
    async with (
        served(folder, stored),
        join(folder, config, role=Role.JUDGE.value, name=worker) as bus,
        presence(bus, subjects, Role.JUDGE, worker) as status,
    ):
        try:
            found = await rejudge(RoleRun(folder, config, WorkerContext(bus, subjects, status)))
        except anyio.get_cancelled_exc_class():
            print("interrupted: what is judged stays; the same command goes on", file=sys.stderr)
            raise
    await anyio.Path(folder.rejudged(rubric)).write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    console = Console()
    console.print(report_table(found))
    console.print(summary(found), soft_wrap=True)
    return 1 if found.unjudged else 0


async def rejudge(run: RoleRun) -> Rejudged:
    """Everything that had ended when the queue was first empty is judged on return; what is judged already is left alone."""
    bus, subjects, rubrics = run.context.bus, run.context.subjects, run.config.bus_config.rubrics
    rubric = run.config.judge_config.rubric
    queue = trajectory_queue(subjects, run.config.bus_config, rubric)
    remaining, began = Remaining(), time.monotonic()
    async with open_judge(run) as judge:
        # Only now: a judge that does not exist, or cannot be had, leaves no trace in the run.
        if not run.config.bus_config.url:
            await admit(run.folder, rubric)
        async with shown(remaining, run.context.status), anyio.create_task_group() as group:
            group.start_soon(judge_worker(run, judge).run)
            await wait_empty(bus, queue, remaining)
            episodes = await ended_episodes(bus, subjects)
            await wait_empty(bus, queue, remaining)
            group.cancel_scope.cancel()
    return await read_report(
        bus,
        subjects,
        rubric=rubric,
        against=rubrics[0] if rubrics[0] != rubric else "",
        episodes=episodes,
        elapsed_s=time.monotonic() - began,
    )
