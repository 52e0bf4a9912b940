"""`millrace sft`: trains a run on the conversations that were imported into it; no browser, policy, judge or feeder runs.

It is the offline trainer: a conversation is an episode, an epoch a pass over all of them. Given again, the command goes on
where it was, whatever was killed.
"""

import time
from collections.abc import Sequence

from anyio.to_thread import run_sync

from bus.lineage import all_announced
from bus.ports import Bus
from bus.subjects import Subjects
from ops.console.terminal import Console
from ops.machine.placement import Wanted, shares_of, specs_of, visible_gpus
from ops.monitor.dashboard import dashboard
from ops.monitor.run_watch import watching
from ops.processes.local_roles import local_roles
from ops.replay.display import ReplayDisplay
from ops.replay.player import Played
from ops.replay.result import OfflineResult
from ops.run.base_models import starting_model
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.logs import role_logs
from ops.sft.import_mark import prompts_digest, require_import
from ops.sft.plan import SftPlan, planned
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.messages import Judgement, Role, Split, Trajectory


async def train_conversations(
    folder: RunFolder, config: Config, *, num_epochs: int | None = None, overrides: Sequence[str] = ()
) -> OfflineResult:
    """Returns when all versions are published.

    Raises:
        ConfigurationError: there is nothing to train on, or not all that is to be imported is there; the run was begun with
            other conversations, or it does not imitate.
    """
    require_import(folder, await run_sync(lambda: prompts_digest(starting_model(config.policy_config))))
    began, console = time.monotonic(), Console()
    subjects, gpus = subjects_of(config), visible_gpus()
    with (
        (folder.logs / "sft.out").open("a") as output,
        role_logs(folder.logs / "sft.log", run=config.bus_config.run, role="sft", worker="", stream=output),
    ):
        async with local_roles(folder) as roles:
            await roles.serve(config)
            async with (
                join(folder, config, role=Role.MONITOR.value, name="sft") as bus,
                watching(bus, subjects, config.bus_config) as watch,
            ):
                judged = await _trajectories(bus, subjects, config.bus_config.trained_rubric)
                stored = folder.load()
                plan = planned(
                    config,
                    judged,
                    num_ranks=max(1, len(gpus)),
                    num_epochs=num_epochs,
                    overrides=overrides,
                    begun=stored if stored.feeder_config.num_stored else None,
                )
                require_same_data(folder, plan)
                folder.create(plan.config)
                console.print(str(plan), soft_wrap=True, highlight=False, markup=False)
                display = ReplayDisplay(plan.config, roles.statuses, watch, plan.num_conversations)
                display.note_played(Played(num_read=plan.num_conversations, num_replayed=plan.num_conversations))
                display.phase = 1
                async with dashboard(display.view, console):
                    where = ("--run-dir", str(folder.path), "--config", str(folder.config))
                    for spec in specs_of(shares_of(plan.config, Wanted(trainer_gpus=gpus), gpus), where):
                        roles.supervisor.start(spec)
                    await roles.finished(Role.TRAINER)
                    await roles.stop(Role.TRAINER)
                versions = await all_announced(bus, subjects)
    outcome = OfflineResult.of(
        versions, folder, num_stored=plan.num_conversations, stored_version=-1, seconds=time.monotonic() - began
    )
    outcome.write(folder.result)
    console.print(outcome.table())
    return outcome


def require_same_data(folder: RunFolder, plan: SftPlan) -> None:
    """Raises `ConfigurationError` where the run's training was begun with another number of conversations."""
    known = folder.load().feeder_config.num_stored
    if known not in (0, plan.num_conversations):
        raise ConfigurationError(
            f"{folder.path} was begun with {known} conversations and now has {plan.num_conversations}: its epochs would mix "
            "two data sets; import all of them into a run of its own"
        )


async def _trajectories(bus: Bus, subjects: Subjects, rubric: str) -> list[Trajectory]:
    """In the order in which the trainer consumes them."""
    records = await bus.history(subjects.judged, subjects.judgements_by(rubric, Split.TRAIN))
    return [record.message.trajectory for record in records if isinstance(record.message, Judgement)]
