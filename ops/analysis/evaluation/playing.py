"""Plays what is left of an evaluation: a run of its own, with feeder, browser, policy and judge on this machine.

Whatever is killed: the same command goes on behind what its streams hold. What is complete is not played again, only counted.
"""

import time

from ops.analysis.evaluation.counting import Counted, result_of
from ops.analysis.evaluation.plan import Plan
from ops.analysis.evaluation.result import EvaluationResult
from ops.analysis.report.report import Report
from ops.archive.stream_source import StreamSource
from ops.monitor.dashboard import dashboard
from ops.monitor.role_rows import role_rows
from ops.monitor.run_watch import RunWatch, watching
from ops.monitor.view import Progress, View
from ops.processes.local_roles import LocalRoles, local_roles
from ops.run.joining import join, subjects_of
from schemas.ids import PolicyVersion
from schemas.messages import Role, Split

_ROLES = (Role.FEEDER, Role.BROWSER, Role.POLICY, Role.JUDGE)


async def evaluate(plan: Plan) -> EvaluationResult:
    """Raises `ConfigurationError` when a role cannot run."""
    config, subjects = plan.config, subjects_of(plan.config)
    rubric = config.bus_config.trained_rubric
    async with local_roles(plan.folder) as roles:
        await roles.serve(config)
        async with join(plan.folder, config, role="monitor", name="eval") as bus:
            judged = await bus.subjects(subjects.judged, subjects.judgements_by(rubric, Split.EVAL))
            if len(judged) < plan.num_episodes:
                async with watching(bus, subjects, config.bus_config) as watch:
                    await _play(plan, roles, watch)
        async with join(plan.folder, config, role="consumer", name="eval") as bus:
            counted = Counted(Report(source=str(plan.folder.path), run=config.bus_config.run, rubric=rubric))
            async for stored in StreamSource(bus, subjects).episodes():
                counted.add_stored(stored)
            return result_of(counted, plan)


async def _play(plan: Plan, roles: LocalRoles, watch: RunWatch) -> None:
    began = time.monotonic()
    async with dashboard(lambda: _view(plan, roles, watch, time.monotonic() - began)):
        roles.start(*_ROLES)
        await roles.finished(Role.FEEDER)
        await roles.stop(*_ROLES)


def _view(plan: Plan, roles: LocalRoles, watch: RunWatch, elapsed_s: float) -> View:
    evaluation = watch.state.evaluations.get(PolicyVersion(0))
    done = evaluation.num_judged if evaluation else 0
    note = f"success {evaluation.success:.2f}" if evaluation else ""
    return View(
        title="Millrace evaluation",
        phases=("playing",),
        remark=plan.model.name,
        elapsed_s=elapsed_s,
        roles=role_rows(roles.statuses.by_name, watch.state.heartbeats),
        progress=(Progress(label="episodes", done=done, total=plan.num_episodes, note=note),),
    )
