"""`millrace blocklist` on a real nats-server: lists, adds, removes, refuses; with the server up and with it down."""

import json
import re
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from bus.blocklist import block, read_blocklist
from bus.jetstream import connect
from bus.server import address_of
from ops.processes.role_process import millrace_command, millrace_environment
from ops.run.folder import RunFolder
from schemas.bus_config import BusConfig
from schemas.errors import BusError
from schemas.ids import EpisodeId
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.runs.running_run import running_run

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
_EPISODE = EpisodeId("train-r0000-t1-m0")


async def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    def command() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            millrace_command(["blocklist", *arguments]),
            env={**millrace_environment(), "COLUMNS": "200"}, capture_output=True, text=True, check=False, timeout=HANGS_S,
        )  # fmt: skip

    return await anyio.to_thread.run_sync(command)


async def listed(folder: Path, *arguments: str) -> dict[str, dict[str, object]]:
    lines = (await run("--run-dir", str(folder), "--json", *arguments)).stdout.splitlines()
    return {entry["site"]: entry for entry in map(json.loads, lines)}


async def test_what_judges_blocked_is_listed_and_a_person_may_change_it(tmp_path: Path) -> None:
    folder = ["--run-dir", str(tmp_path)]
    async with running_run(tmp_path) as bus:
        assert "no site is blocked" in (await run(*folder)).stdout
        await block(bus, SUBJECTS, "captcha.example", hours=12.0, reason="a captcha in all screenshots", episode=_EPISODE)
        added = await run("add", "https://www.Example.org:443/a", "--hours", "2", "--reason", "they asked us to", *folder)
        assert added.returncode == 0, added.stderr
        assert added.stdout.startswith("example.org is left out of training for 2 hours, until ")
        table = (await run(*folder)).stdout.splitlines()
        assert [line.split()[0] for line in table] == ["site", "example.org", "captcha.example"], (
            "the first to end comes first"
        )
        assert re.search(r"\b(2 h 0|1 h 5\d) min", table[1]), "its minutes are rounded"
        assert "they asked us to" in table[1]
        assert re.search(r"\b(12 h 0|11 h 5\d) min", table[2])
        assert "a captcha in all screenshots" in table[2]
        assert _EPISODE in table[2]

        removed = await run("remove", "captcha.example", *folder)
        assert (removed.returncode, removed.stdout) == (0, "captcha.example is trained on again\n")
        assert set(await listed(tmp_path)) == {"example.org"}
        every = await listed(tmp_path, "--all")
        assert (every["captcha.example"]["blocked"], every["captcha.example"]["seconds_left"]) == (False, 0)
        assert every["example.org"]["blocked"] is True
        assert every["example.org"]["episode"] is None
        assert "over" in (await run("--all", *folder)).stdout

        again = await run("remove", "captcha.example", *folder)
        assert again.returncode == 78
        assert "captcha.example is not blocked" in again.stderr
        both = await run(*folder, "--json", "add", "example.org")
        assert both.returncode == 78
        assert "--all and --json belong to the list" in both.stderr
        nonsense = await run("add", "two words", *folder)
        assert nonsense.returncode == 78
        assert "'two words' is no site: write a host such as example.org" in nonsense.stderr
        assert set((await read_blocklist(bus, SUBJECTS)).blocked(datetime.now(UTC).timestamp())) == {"example.org"}


async def test_a_run_whose_server_is_down_is_read_and_changed_too(tmp_path: Path) -> None:
    async with running_run(tmp_path):
        pass
    # The folder of the run may be named before the action as well as after it.
    added = await run("--run-dir", str(tmp_path), "add", "shop")
    assert added.returncode == 0, added.stderr
    [entry] = (await listed(tmp_path)).values()
    end = datetime.fromisoformat(str(entry["until"]))
    assert abs(end - datetime.now(UTC) - timedelta(hours=12)) < timedelta(minutes=5), "judge_config.blocklist_hours"
    nowhere = await run("--run-dir", str(tmp_path / "nowhere"))
    assert nowhere.returncode == 78
    assert "holds no run" in nowhere.stderr


@pytest.mark.parametrize("role", ["monitor", "feeder"])
async def test_who_only_reads_the_list_may_not_change_it(tmp_path: Path, role: str) -> None:
    async with running_run(tmp_path) as admin:
        entry = await block(admin, SUBJECTS, "captcha.example", hours=1.0, reason="captcha")
        folder = RunFolder(tmp_path)
        address = address_of(folder.server, run=SUBJECTS.run, role=role)
        async with connect(address, SUBJECTS, BusConfig(run=SUBJECTS.run), name="test") as reader:
            assert set((await read_blocklist(reader, SUBJECTS)).entries) == {entry.site}
            with pytest.raises(BusError):
                await block(reader, SUBJECTS, "example.org", hours=1.0, reason="not mine")
            assert set((await read_blocklist(reader, SUBJECTS)).entries) == {entry.site}


@pytest.mark.parametrize("shift", [timedelta(days=30), -timedelta(days=30)], ids=str)
async def test_whoever_blocked_a_site_may_have_a_wrong_clock(
    tmp_path: Path, shift: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_s = time.time
    async with running_run(tmp_path) as admin:
        with monkeypatch.context() as wrong:
            wrong.setattr(time, "time", lambda: true_s() + shift.total_seconds())
            await block(admin, SUBJECTS, "captcha.example", hours=2.0, reason="captcha")
        [entry] = (await listed(tmp_path)).values()
        assert entry["blocked"] is True
        assert 3600 < int(str(entry["seconds_left"])) <= 7200
        assert abs(datetime.fromisoformat(str(entry["since"])) - datetime.now(UTC)) < timedelta(hours=1)
