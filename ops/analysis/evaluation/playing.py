"""Plays what is left of an evaluation: a run of its own, with feeder, browser, policy and judge on this machine, or, on given
servers, with this machine's feeder and the workers that others have started there.

Whatever is killed: the same command goes on behind what its streams hold. What is complete is not played again, only counted.
"""

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import anyio.to_thread

from bus.access import Access
from ops.analysis.evaluation.counting import Counted, result_of
from ops.analysis.evaluation.plan import Plan
from ops.analysis.evaluation.protocol import Apart
from ops.analysis.evaluation.result import EvaluationResult
from ops.analysis.report.report import Report
from ops.analysis.report.seen import Seen
from ops.archive.stream_source import StreamSource
from ops.monitor.dashboard import dashboard
from ops.monitor.role_rows import role_rows
from ops.monitor.run_watch import RunWatch, watching
from ops.monitor.view import Progress, View
from ops.processes.local_roles import LocalRoles, local_roles
from ops.run.joining import address_for, join, subjects_of
from ops.run.streams import create_streams
from schemas.errors import BusUnavailable, ConfigurationError, NotPermitted
from schemas.ids import PolicyVersion
from schemas.messages import Heartbeat, Role, Split
from trainer.feeding.task_files import task_lines

_WORKERS = (Role.BROWSER, Role.POLICY, Role.JUDGE)


async def evaluate(plan: Plan) -> EvaluationResult:
    """Raises `ConfigurationError` when a role cannot run, or the servers' run is not this evaluation's."""
    config, subjects = plan.config, subjects_of(plan.config)
    rubric = config.bus_config.trained_rubric
    async with local_roles(plan.folder) as roles:
        await _serve(plan, roles)
        async with join(plan.folder, config, role="monitor", name="eval") as bus:
            if plan.is_on_servers:
                await _claim(plan, await bus.last_seq(subjects.trajectories))
            judged = await bus.subjects(subjects.judged, subjects.judgements_by(rubric, Split.EVAL))
            if len(judged) < plan.num_episodes:
                async with watching(bus, subjects, config.bus_config) as watch:
                    await _play(plan, roles, watch)
        async with join(plan.folder, config, role="consumer", name="eval") as bus:
            apart = plan.protocol.apart if plan.protocol else Apart()
            seen = await anyio.to_thread.run_sync(training_of, plan.trained_on)
            report = Report(source=str(plan.folder.path), run=config.bus_config.run, rubric=rubric, seen=seen)
            counted = Counted(report, apart)
            async for stored in StreamSource(bus, subjects).episodes():
                counted.add_stored(stored)
            return result_of(counted, plan)


def training_of(files: Sequence[Path]) -> Seen:
    """What was seen by a model that was trained on these task files; lines that cannot be read were trained on by nobody.

    Raises:
        TaskFileError: a file cannot be read.
    """
    seen = Seen()
    for file in files:
        for line in task_lines(file):
            if line.spec is not None:
                seen.note_training(line.spec)
    return seen


async def _serve(plan: Plan, roles: LocalRoles) -> None:
    """On given servers the run's streams are made by whoever has the administrator's key: here, if it is here."""
    bus = plan.config.bus_config
    if not plan.is_on_servers:
        await roles.serve(plan.config)
        return
    with suppress(ConfigurationError, NotPermitted):  # others may have made them
        await create_streams(address_for(plan.folder, bus, Access.ADMIN), bus)
    try:
        await roles.serve(plan.config)
    except BusUnavailable as error:
        raise BusUnavailable(
            f"{bus.url} does not answer, or has no streams of the run {bus.run}: whoever has the administrator's key makes "
            f"them with millrace streams --run-dir {plan.folder.path}"
        ) from error


async def _claim(plan: Plan, last_seq: int) -> None:
    """Raises `ConfigurationError` where the run holds episodes before this evaluation has begun there."""
    claimed = plan.folder.path / "claimed"
    if claimed.exists():
        return
    if last_seq > 0:
        raise ConfigurationError(
            f"the run {plan.config.bus_config.run} holds episodes that are not this evaluation's: write another bus_config.run"
        )
    claimed.touch()


async def _play(plan: Plan, roles: LocalRoles, watch: RunWatch) -> None:
    began = time.monotonic()
    mine = (Role.FEEDER,) if plan.is_on_servers else (Role.FEEDER, *_WORKERS)
    async with dashboard(lambda: _view(plan, roles, watch, time.monotonic() - began)):
        roles.start(*mine)
        await roles.finished(Role.FEEDER)
        await roles.stop(*mine)


def _view(plan: Plan, roles: LocalRoles, watch: RunWatch, elapsed_s: float) -> View:
    evaluation = watch.state.evaluations.get(PolicyVersion(0))
    done = evaluation.num_judged if evaluation else 0
    note = f"success {evaluation.success:.2f}" if evaluation else ""
    awaited = awaited_roles(watch.state.heartbeats.values()) if plan.is_on_servers else ()
    waits = f"; nobody is there yet as {', '.join(awaited)}" if awaited else ""
    return View(
        title="Millrace evaluation",
        phases=("playing",),
        remark=f"{plan.model.name}{waits}",
        elapsed_s=elapsed_s,
        roles=role_rows(roles.statuses.by_name, watch.state.heartbeats),
        progress=(Progress(label="episodes", done=done, total=plan.num_episodes, note=note),),
    )


def awaited_roles(heard: Collection[Heartbeat]) -> tuple[str, ...]:
    """What no worker has been heard of, and others have to start."""
    there = {beat.role for beat in heard}
    return tuple(role.value for role in _WORKERS if role not in there)
