"""`millrace replay`: puts stored episodes into a run, to be consumed, judged again or trained on offline.

A run that is not there yet is created with the source's configuration; its own server is up for the while, unless it runs
already.
"""

import time
from dataclasses import replace

from ops.archive.importer import Importer
from ops.console.terminal import Console
from ops.monitor.dashboard import dashboard
from ops.monitor.view import Progress, View
from ops.replay.config import copied_config
from ops.replay.player import Pace, Played, play
from ops.replay.request import ReplayRequest
from ops.replay.source import ReplaySource, open_replay
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.logs import role_logs
from ops.run.served import served
from schemas.config import Config


async def main(request: ReplayRequest) -> int:
    """Returns 0 when everything that was selected is in the run."""
    async with open_replay(request.source) as source:
        request.selection.check(await source.episodes.rubrics(), one=False)
        folder = RunFolder(request.into)
        config = _target_config(folder, source)
        run = config.bus_config.run
        with role_logs(folder.logs / "replay.log", run=run, role="replay", worker=""):
            played = await replay(request, source, folder, config)
    left_out = played.num_read - played.num_replayed
    Console().print(
        f"{played.num_replayed} episodes are in run {run} ({played.num_known} were there already), {left_out} left out, "
        f"{played.num_incomplete} of them because part of their chain has aged out\nrun folder {folder.path}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
    return 0


def _target_config(folder: RunFolder, source: ReplaySource) -> Config:
    if folder.config.is_file():
        return folder.load()
    config = copied_config(source.config, folder, suffix="replay")
    folder.create(config)
    return config


async def replay(request: ReplayRequest, source: ReplaySource, folder: RunFolder, config: Config) -> Played:
    """Plays the source into the run, and shows how far it is."""
    began, so_far = time.monotonic(), Played()

    def progress(played: Played) -> None:
        nonlocal so_far
        so_far = replace(played)

    def view() -> View:
        note = f"{so_far.num_replayed} replayed"
        done, total = so_far.share(source.num_episodes, request.selection.limit)
        return View(
            title="Millrace replay",
            phases=("replaying",),
            elapsed_s=time.monotonic() - began,
            progress=(Progress(label="stored episodes", done=done, total=total, note=note),),
        )

    async with served(folder, config), join(folder, config, role="replayer", name="replay") as bus, dashboard(view):
        return await play(
            source.episodes,
            Importer(bus=bus, subjects=subjects_of(config), judgements=not request.rejudge),
            request.selection,
            pace=Pace(request.speed),
            judgements=not request.rejudge,
            progress=progress,
        )
