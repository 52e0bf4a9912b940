"""Archive, import and export over real servers: identical bytes and identities, whatever is killed on the way."""

import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from bus.ports import Bus
from bus.subjects import Subjects
from ops.archive import archiving, importing
from ops.archive.archive_source import ArchiveSource
from ops.archive.exports.export import export
from ops.archive.exports.played import Selection
from ops.archive.folder import ArchiveFolder
from ops.archive.opening import open_source
from ops.archive.stream_source import StreamSource
from ops.archive.verify import verify
from ops.audit.audit import audit
from ops.config.loading import load_config
from ops.processes.role_process import millrace_command, millrace_environment
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.served import served
from schemas.archive_config import ArchiveConfig
from schemas.bus_config import BusConfig
from schemas.extensions import EXPORTERS
from schemas.ids import RunName, WorkerId
from schemas.messages import Heartbeat, Role, Split
from tests.support.runs import archive_world as world
from tests.support.runs.leaving_role import role_command

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
NUM_EPISODES = 40


def new_run(path: Path, name: str, num_shards: int) -> RunFolder:
    run = RunFolder(path)
    bus = BusConfig(run=RunName(name), num_shards=num_shards)
    run.create(replace(load_config("default"), bus_config=bus, archive_config=ArchiveConfig(episodes_per_part=7)))
    return run


@asynccontextmanager
async def opened(run: RunFolder) -> AsyncIterator[tuple[Bus, Subjects]]:
    config = run.load()
    async with served(run, config), join(run, config, role="admin", name="test") as bus:
        yield bus, subjects_of(config)


async def filled_run(path: Path) -> tuple[RunFolder, world.Contents]:
    run = new_run(path, "first", 4)
    async with opened(run) as (bus, subjects):
        await world.fill(bus, subjects, num_episodes=NUM_EPISODES)
        return run, await world.contents(StreamSource(bus, subjects))


async def millrace(*arguments: str | Path) -> str:
    """The command as people run it."""
    done = await anyio.run_process(
        millrace_command([str(argument) for argument in arguments]), env=millrace_environment(), check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


async def test_archive_import_and_export_change_nothing(tmp_path: Path) -> None:
    first, expected = await filled_run(tmp_path / "first")
    archive = ArchiveFolder(first.path / "archive")
    assert f"{NUM_EPISODES} episodes" in await millrace("archive", "--once", "--run-dir", first.path)
    report = await millrace("archive", "--verify", archive.path)
    assert report.split()[-2:] == ["damaged", "0"]
    assert await world.contents(ArchiveSource(archive)) == expected

    second = new_run(tmp_path / "second", "second", 3)
    assert await importing.import_episodes(archive.path, second, second.load(), judgements=True) == 0
    async with opened(second) as (bus, subjects):
        assert await world.contents(StreamSource(bus, subjects)) == expected
        found = (await audit(bus, second.load())).findings
        assert (found.num_trajectories, found.num_duplicates, found.broken_chains) == (NUM_EPISODES, 0, ())
    assert await archiving.archive_once(second, second.load(), "archiver-2") == 0
    again = ArchiveFolder(second.path / "archive")
    assert verify(again).damaged == []
    assert await world.contents(ArchiveSource(again)) == expected
    assert world.files(again.path / "screenshots") == world.files(archive.path / "screenshots")

    exports = [
        await every_export(source, tmp_path / str(number))
        for number, source in enumerate((archive.path, first.path, second.path))
    ]
    assert exports[0]
    assert exports[1] == exports[0]
    assert exports[2] == exports[0]


async def every_export(source: Path, out: Path) -> dict[str, bytes]:
    selection = Selection(split=Split.TRAIN, rubric="environment")
    async with open_source(source, name="export") as given:
        for format_name in EXPORTERS.builtin:
            await export(
                given.source,
                out / format_name,
                format_name=format_name,
                selection=selection,
                context=given.config.context_config,
                model=given.config.model_config,
            )
    return world.files(out)


_NEVER = 10**9
_KILLED_AT = """
import os, signal, sys
from pathlib import Path
from ops.archive import archiver
from ops.cli import main
# Whoever is killed leaves its lease behind, which ends when the server has the time.
archiver._LEASE_PATIENCE_S = 900.0
remaining = int(sys.argv.pop(1))
def counting(owner, name):
    original = getattr(owner, name)
    def counted(*arguments, **options):
        global remaining
        remaining -= 1
        if remaining == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **options)
    setattr(owner, name, counted)
counting(os, "fsync")
counting(Path, "replace")
sys.exit(main(sys.argv[1:]))
"""


async def test_an_archiver_that_is_killed_again_and_again_makes_the_same_archive(tmp_path: Path) -> None:
    run, expected = await filled_run(tmp_path / "first")
    arguments = ["archive", "--once", "--run-dir", str(run.path)]
    async with served(run, run.load()):
        await millrace(*arguments, f"archive_config.folder={tmp_path / 'unharmed'}")
        program, killed = [*millrace_command([])[:2], "-c", _KILLED_AT], ArchiveFolder(tmp_path / "killed")
        num_kills = 0
        for step in (1, 40, 140, _NEVER):
            command = [*program, str(step), *arguments, f"archive_config.folder={killed.path}"]
            done = await anyio.run_process(command, env=millrace_environment(), check=False)
            num_kills += done.returncode == -signal.SIGKILL
            assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
            if killed.is_archive:
                assert verify(killed).damaged == []
    assert num_kills == 3
    assert done.returncode == 0
    assert world.files(killed.path, leaving_out=["config.yaml"]) == world.files(
        tmp_path / "unharmed", leaving_out=["config.yaml"]
    )
    assert await world.contents(ArchiveSource(killed)) == expected


async def test_the_archiver_follows_a_run_that_goes_on(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run", "live", 2)
    async with opened(run) as (bus, subjects):
        settings = ["archive_config.episodes_per_part=4", "archive_config.seconds_per_part=0.5"]
        command = role_command("archive", "--run-dir", str(run.path), "--name", "archiver-1", *settings)
        async with await anyio.open_process(
            command, env=millrace_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as archiver:
            await world.fill(bus, subjects, num_episodes=10)
            num_judgements = len(await bus.subjects(subjects.judged, subjects.judgements(None)))
            await all_archived(bus, subjects, 10, num_judgements)
            archiver.terminate()
            assert await archiver.wait() == 0
        source = ArchiveSource(ArchiveFolder(run.path / "archive"))
        assert await world.contents(source) == await world.contents(StreamSource(bus, subjects))


async def all_archived(bus: Bus, subjects: Subjects, num_episodes: int, num_judgements: int) -> None:
    """Returns when the archiver's heartbeats say that everything is in a part."""
    wanted = {"num_episodes": num_episodes, "num_judgements": num_judgements, "num_waiting": 0}
    async with bus.tail(subjects.heartbeats, subjects.heartbeat(Role.ARCHIVER, WorkerId("archiver-1"))) as heartbeats:
        async for record in heartbeats:
            assert isinstance(record.message, Heartbeat)
            if wanted.items() <= record.message.metrics.items():
                return
