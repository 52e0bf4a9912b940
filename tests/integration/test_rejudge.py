"""Judging again on real servers: beside the old judgements, while the run is up or down, interrupted and continued."""

import json
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from bus.background import companion_group
from bus.context import WorkerContext
from bus.ports import Bus
from bus.presence import Status
from bus.settlement import settle
from bus.subjects import Subjects
from bus.topology import trajectory_queue
from judges.episode import JudgedEpisode
from judges.judge import Judge, Ruling, scored
from judges.named.environment_v1 import EnvironmentJudge
from ops.analysis.rejudging.admission import admit, with_rubric
from ops.archive import archiving, importing
from ops.commands import rejudge as command
from ops.config.loading import load_config
from ops.processes.role_process import millrace_command, millrace_environment
from ops.roles.judge import judge_worker
from ops.roles.running import run_role
from ops.run.folder import RunFolder
from ops.run.joining import RoleRun, join, subjects_of
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import Heartbeat, Role
from tests.builders import task
from tests.deadlines import HANGS_S
from tests.support.bus.played import play
from tests.support.judging.judged_run import AGAIN, OLD, RELABELLED, judged_run, opened, stored, verdicts
from tests.support.judging.scripted_endpoint import scripted_endpoint
from tests.support.judging.scripted_judging import SUBJECTS, calls, judgements, judging_run, say, write_all

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
WORKER = WorkerId("rejudge-1")


async def rejudge(run: RunFolder, *overrides: str) -> int:
    with anyio.fail_after(HANGS_S):
        return await command.rejudge_run(run.path, overrides or (RELABELLED,), WORKER)


def figures(run: RunFolder) -> dict[str, object]:
    found: dict[str, object] = json.loads(run.rejudged(AGAIN).read_text())
    return found


async def test_a_run_that_is_down_is_judged_beside_the_old_judgements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = await judged_run(tmp_path)
    async with opened(run) as (bus, subjects):
        before = await stored(bus, subjects, OLD)
    assert await rejudge(run) == 0
    async with opened(run) as (bus, subjects):
        assert await stored(bus, subjects, OLD) == before
        assert verdicts(await stored(bus, subjects, AGAIN)) == [
            "success", "failure", "excluded", "failure", "success", "excluded",
        ]  # fmt: skip
    found = figures(run)
    assert found["verdicts"] == {"success": 2, "failure": 2, "excluded": 2}
    assert found["confusion"] == {
        "success": {"success": 2, "failure": 1}, "failure": {"failure": 1}, "excluded": {"excluded": 1},
        "unjudged": {"excluded": 1},
    }  # fmt: skip
    assert (found["num_episodes"], found["unjudged"], found["against"]) == (6, [], OLD)
    printed = capsys.readouterr()
    assert f"every trajectory has a judgement by {AGAIN}" in printed.out
    assert "judged 100 %" in printed.err


async def test_the_configuration_takes_the_rubric_on_once(tmp_path: Path) -> None:
    run, _ = await judged_run(tmp_path, num_episodes=3)
    config = run.load()
    assert await rejudge(run, RELABELLED, "env_config.evaluation_workers=3") == 0
    taken_on = run.config.read_bytes()
    assert run.load().bus_config.rubrics == (OLD, AGAIN)
    assert with_rubric(config, AGAIN) == run.load(), "overrides are of this process alone"
    assert await rejudge(run) == 0
    assert run.config.read_bytes() == taken_on


async def test_a_run_that_is_up_goes_on_meanwhile(tmp_path: Path) -> None:
    run, _ = await judged_run(tmp_path)
    async with opened(run) as (bus, subjects):
        config = run.load()
        before = await stored(bus, subjects, OLD)
        async with join(run, config, role="judge", name="judge-1") as own, companion_group() as group:
            group.start_soon(_judge_by_the_old, own, run)
            await _until_judged(bus, subjects, OLD, 6)
            own_words = await stored(bus, subjects, OLD)
            assert await rejudge(run) == 0
            assert len(await stored(bus, subjects, AGAIN)) == 6
            await play(bus, task("later", index=9), subjects=subjects)
            await _until_judged(bus, subjects, OLD, 7)
            after = await stored(bus, subjects, OLD)
        assert {episode: after[episode] for episode in own_words} == own_words
        assert {episode: after[episode] for episode in before} == before
        assert len(await stored(bus, subjects, AGAIN)) == 6
        assert await rejudge(run) == 0
        assert len(await stored(bus, subjects, AGAIN)) == 7


async def _judge_by_the_old(bus: Bus, run: RunFolder) -> None:
    """The run's own judge, which joined before."""
    config = run.load()
    own = RoleRun(run, config, WorkerContext(bus, subjects_of(config), Status(Role.JUDGE, WorkerId("judge-1"))))
    await judge_worker(own, EnvironmentJudge()).run()


async def _until_judged(bus: Bus, subjects: Subjects, rubric: str, number: int) -> None:
    with anyio.fail_after(HANGS_S):
        async with bus.tail(subjects.judged, subjects.judgements_by(rubric)) as records:
            seen = set[str]()
            async for record in records:
                seen.add(record.subject)
                if len(seen) == number:
                    return


class PausingJudge:
    """Judges so many episodes, then says so and waits for ever."""

    name = "environment_v1"

    def __init__(self, num_judged: int) -> None:
        self.asked = list[EpisodeId]()
        self.paused = anyio.Event()
        self._num_judged = num_judged

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        if len(self.asked) == self._num_judged:
            self.paused.set()
            await anyio.sleep_forever()
        self.asked.append(episode.trajectory.episode)
        return scored(passed=True)


async def test_what_is_judged_before_an_interruption_stays_and_the_rest_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, ended = await judged_run(tmp_path)
    finished = {trajectory.episode for trajectory in ended if trajectory.outcome.finished}
    first, second = PausingJudge(2), PausingJudge(99)

    @asynccontextmanager
    async def given(_: RoleRun) -> AsyncIterator[Judge]:
        yield first if not first.paused.is_set() else second

    monkeypatch.setattr(command, "open_judge", given)
    async with opened(run) as (bus, subjects):
        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                group.start_soon(command.rejudge_run, run.path, (RELABELLED, "env_config.evaluation_workers=1"), WORKER)
                await first.paused.wait()
                group.cancel_scope.cancel()
        assert "the same command goes on" in capsys.readouterr().err
        assert not run.rejudged(AGAIN).exists()
        halfway = await stored(bus, subjects, AGAIN)
        assert set(first.asked) <= set(halfway)
        assert len(halfway) < len(ended)
        assert await rejudge(run) == 0
        assert sorted([*first.asked, *second.asked]) == sorted(finished), "nobody is judged twice"
        whole = await stored(bus, subjects, AGAIN)
    assert {episode: whole[episode] for episode in halfway} == halfway
    assert len(whole) == len(ended)


async def test_a_judge_that_cannot_be_had_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = await judged_run(tmp_path, num_episodes=3)
    untouched = run.config.read_bytes()

    def none(_: RoleRun) -> AbstractAsyncContextManager[Judge]:
        raise ConfigurationError("there is no such judge")

    monkeypatch.setattr(command, "open_judge", none)
    with pytest.raises(ConfigurationError, match="no such judge"):
        await rejudge(run)
    assert run.config.read_bytes() == untouched
    async with opened(run) as (bus, subjects):
        assert await bus.depth(trajectory_queue(subjects, run.load().bus_config, AGAIN)) is None


async def test_the_command_waits_for_what_others_have_in_hand_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    run, ended = await judged_run(tmp_path)
    argv = millrace_command(["rejudge", "--run-dir", str(run.path), RELABELLED])
    async with opened(run) as (bus, subjects):
        await admit(run, AGAIN)
        queue = trajectory_queue(subjects, run.load().bus_config, AGAIN)
        async with bus.work(queue, prefetch=0) as inbox:
            held = await anext(aiter(inbox))
            async with (
                settle(bus, held, WORKER),
                await anyio.open_process(
                    argv, env=millrace_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
                ) as process,
            ):
                await _until_judged(bus, subjects, AGAIN, len(ended) - 1)
                assert process.returncode is None
                process.send_signal(signal.SIGINT)
                with anyio.fail_after(HANGS_S):
                    assert await process.wait() == 130
        # Acknowledged by somebody who judged nothing: the queue is empty, and one trajectory has no judgement.
        done = await anyio.run_process(argv, env=millrace_environment(), check=False)
    assert done.returncode == 1
    assert f"no judgement by {AGAIN}: {ended[0].episode}" in done.stdout.decode()
    assert figures(run)["unjudged"] == [ended[0].episode]


async def test_an_archive_is_judged_again_in_a_run_of_its_own(tmp_path: Path) -> None:
    run, ended = await judged_run(tmp_path / "first")
    assert await archiving.archive_once(run, run.load(), "archiver-1") == 0
    second = RunFolder(tmp_path / "second")
    second.create(load_config("default", ["bus_config.run=second"]), needed_bytes=0)
    assert await importing.import_episodes(run.path / "archive", second, second.load(), judgements=False) == 0
    assert await rejudge(second) == 0
    async with opened(second) as (bus, subjects):
        assert await stored(bus, subjects, OLD) == {}
        assert len(await stored(bus, subjects, AGAIN)) == len(ended)
    assert figures(second)["confusion"] == {"unjudged": {"success": 2, "failure": 2, "excluded": 2}}


async def test_the_rubric_judge_asks_by_its_new_name_pauses_at_the_runs_limit_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the first rubric asked counts to the run's limit, and is asked again: every rubric has answers of its own."""
    label = "judge_config.label=again"
    async with (
        scripted_endpoint(say) as endpoint,
        judging_run(tmp_path / "run", endpoint.base_url) as (run, bus),
    ):
        await write_all(bus, 4)
        with anyio.fail_after(HANGS_S):
            async with companion_group() as group:
                group.start_soon(run_role, Role.JUDGE, run.path, run.load(), WORKER)
                before = await judgements(bus, 4)
        num_before = len(endpoint.requests)

        limit = num_before + 3
        with anyio.fail_after(HANGS_S):
            async with companion_group() as group:
                group.start_soon(command.rejudge_run, run.path, (label, f"judge_config.max_calls={limit}"), WORKER)
                await _paused(bus)
        assert len(endpoint.requests) == limit

        assert await rejudge(run, label) == 0
        by_rubric = Counter(call.rubric for call in await calls(bus))
        again = await bus.subjects(SUBJECTS.judged, SUBJECTS.judgements_by("rubric_v1-again"))
    assert by_rubric == {"rubric_v1": num_before, "rubric_v1-again": num_before}
    assert len(endpoint.requests) == 2 * num_before
    assert len(again) == len(before) == 4
    assert "every trajectory has a judgement by rubric_v1-again" in capsys.readouterr().out
    assert run.load().bus_config.rubrics == ("rubric_v1", "rubric_v1-again")
    figures = json.loads(run.rejudged("rubric_v1-again").read_text())
    assert figures["confusion"] == {"success": {"success": 2}, "failure": {"failure": 2}}
    assert figures["spending"]["num_calls"] == num_before


async def _paused(bus: Bus) -> None:
    async with bus.tail(SUBJECTS.heartbeats, SUBJECTS.everything("heartbeat", "judge")) as records:
        async for record in records:
            if isinstance(record.message, Heartbeat) and record.message.state == "paused":
                return
