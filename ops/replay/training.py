"""`millrace replay SOURCE --train`: a run whose trainer learns from stored episodes alone. No browser, policy or feeder runs.

    import    the selected episodes are put on the new run's streams
    train     the trainer makes `num_iterations` versions, in passes over them; with --rejudge the judge works beside it
    results   a table of the versions, result.json

Every phase goes on where it was when the same command is given again.
"""

import time
from collections.abc import Callable, Sequence

from bus.lineage import all_announced
from bus.ports import Bus
from bus.subjects import Subjects
from ops.archive.importer import Importer
from ops.console.terminal import Console
from ops.monitor.dashboard import dashboard
from ops.monitor.run_watch import watching
from ops.processes.local_roles import LocalRoles, local_roles
from ops.replay.config import num_iterations, offline_config, with_dataset
from ops.replay.display import PHASES, ReplayDisplay
from ops.replay.player import Pace, Played, play
from ops.replay.request import ReplayRequest
from ops.replay.result import OfflineResult
from ops.replay.source import ReplaySource, open_replay
from ops.run.alone import alone
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.logs import role_logs
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.messages import Role, Split

_ITERATIONS = "feeder_config.num_iterations="


async def main(request: ReplayRequest, *, num_passes: int, overrides: Sequence[str]) -> int:
    """Returns 0 when all versions are published."""
    console = Console()
    outcome = await train_offline(request, num_passes=num_passes, overrides=overrides, console=console)
    console.print(outcome.table())
    return 0


async def train_offline(
    request: ReplayRequest, *, num_passes: int = 1, overrides: Sequence[str] = (), console: Console | None = None
) -> OfflineResult:
    """Trains a run in `request.into`, whose last version is the result's `model`.

    Args:
        num_passes: over the data set; `feeder_config.num_iterations` among the overrides counts versions instead.

    Raises:
        ConfigurationError: nothing was selected, the folder holds a run that was begun with other episodes, or is in use.
    """
    began = time.monotonic()
    folder = RunFolder(request.into)
    if request.selection.split is not Split.TRAIN:
        raise ConfigurationError("offline training takes the training episodes: leave --split out")
    async with open_replay(request.source) as source:
        rubrics = await source.episodes.rubrics()
        request.selection.check(rubrics, one=not request.rejudge)
        rubric = None if request.rejudge else request.selection.rubric or next(iter(rubrics), None)
        config = offline_config(source.config, folder, source.checkpoints, overrides, rubric=rubric)
        with alone(folder):  # another training's configuration stays what it is
            folder.create(config)
        with (
            (folder.logs / "replay.out").open("a") as output,
            role_logs(folder.logs / "replay.log", run=config.bus_config.run, role="replay", worker="", stream=output),
        ):
            counts_versions = any(text.startswith(_ITERATIONS) for text in overrides)
            training = OfflineTraining(request, source, folder, None if counts_versions else num_passes)
            outcome = await training.run(config, console, began)
    outcome.write(folder.result)
    return outcome


class OfflineTraining:
    """One offline training on this machine."""

    def __init__(self, request: ReplayRequest, source: ReplaySource, folder: RunFolder, num_passes: int | None) -> None:
        """`num_passes`: None, to train as many versions as are configured."""
        self._request = request
        self._source = source
        self._folder = folder
        self._num_passes = num_passes

    async def run(self, config: Config, console: Console | None, began: float) -> OfflineResult:
        subjects = subjects_of(config)
        async with local_roles(self._folder) as roles:
            await roles.serve(config)
            async with (
                join(self._folder, config, role="replayer", name="replay") as bus,
                join(self._folder, config, role="monitor", name="replay-watch") as watched,
                watching(watched, subjects, config.bus_config) as watch,
            ):
                display = ReplayDisplay(
                    config, roles.statuses, watch, self._source.num_episodes, self._request.selection.limit
                )
                async with dashboard(display.view, console):
                    played = await self._import(bus, subjects, display.note_played)
                    display.config = config = await self._with_dataset(bus, subjects, config, played)
                    self._folder.create(config)
                    display.phase = 1
                    await self._train(roles)
                    display.phase = len(PHASES)
                versions = await all_announced(bus, subjects)
        return OfflineResult.of(
            versions,
            self._folder,
            num_stored=config.feeder_config.num_stored,
            stored_version=config.trainer_config.stored_version,
            seconds=time.monotonic() - began,
        )

    async def _import(self, bus: Bus, subjects: Subjects, progress: Callable[[Played], None]) -> Played:
        return await play(
            self._source.episodes,
            Importer(bus=bus, subjects=subjects),
            self._request.selection,
            pace=Pace(self._request.speed),
            judgements=not self._request.rejudge,
            progress=progress,
        )

    async def _with_dataset(self, bus: Bus, subjects: Subjects, config: Config, played: Played) -> Config:
        """The trainer consumes what stands on the streams, so that has to be what was selected and nothing else."""
        if self._request.rejudge:
            published = await bus.subjects(subjects.trajectories, subjects.everything("trajectory", Split.TRAIN.value))
        else:
            judged = subjects.judgements_by(config.bus_config.trained_rubric, Split.TRAIN)
            published = await bus.subjects(subjects.judged, judged)
        versions = config.feeder_config.num_iterations
        if self._num_passes is not None:
            versions = num_iterations(len(published), config.env_config.train_tasks_rollout_size, self._num_passes)
        selected = played.num_replayed if self._request.rejudge else played.num_judgements
        return with_dataset(config, len(published), versions, num_selected=selected)

    async def _train(self, roles: LocalRoles) -> None:
        workers = (Role.JUDGE, Role.TRAINER) if self._request.rejudge else (Role.TRAINER,)
        roles.start(*workers)
        await roles.finished(Role.TRAINER)
        await roles.stop(*workers)
