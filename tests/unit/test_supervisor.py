"""Restarts by value, and the supervisor with real processes."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from bus import output_file
from ops.processes.restarts import EXIT_FATAL, EXIT_RESTART, Fatal, Finished, Restart, RestartPolicy, Restarts
from ops.processes.role_process import exit_code, millrace_environment
from ops.processes.supervisor import RoleSpec, RoleState, RoleStatus, supervise
from schemas.messages import Role
from tests.deadlines import HANGS_S
from tests.support.runs.process_tree import Watch, tree_command, watched_pipe

pytestmark = pytest.mark.anyio
_SOON = RestartPolicy(first_delay_s=0.01, longest_delay_s=0.05)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    return tmp_path / "pipe"


@pytest.fixture
async def watch(pipe: Path) -> AsyncIterator[Watch]:
    async with watched_pipe(pipe) as watch:
        yield watch


def python(name: str, code: str, role: Role = Role.BROWSER) -> RoleSpec:
    return RoleSpec(role=role, name=name, argv=(sys.executable, "-I", "-S", "-c", textwrap.dedent(code)))


def test_delays_double_to_a_bound_and_begin_again_after_health() -> None:
    restarts, delays = Restarts(), []
    for ran_s in (1.0,) * 8 + (30.0, 1.0):
        restarts, decision = restarts.after_exit(1, ran_s)
        assert isinstance(decision, Restart)
        delays.append(decision.delay_s)
    assert delays == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 0.2, 0.4])
    assert restarts.num_restarts == 10


def test_ten_thousand_crashes_do_not_overflow() -> None:
    _, decision = Restarts(num_quick_crashes=10_000).after_exit(137, 0.0)
    assert decision == Restart(delay_s=10.0)


def test_a_finished_and_a_fatal_role_are_not_started_again() -> None:
    assert Restarts().after_exit(0, 1.0) == (Restarts(), Finished())
    assert Restarts().after_exit(EXIT_FATAL, 1.0) == (Restarts(), Fatal())


async def test_a_crashed_role_is_restarted_and_its_last_words_are_told(tmp_path: Path, pipe: Path, watch: Watch) -> None:
    changes: list[RoleStatus] = []
    async with supervise(tmp_path, on_change=changes.append, policy=_SOON) as supervisor:
        supervisor.start(RoleSpec(role=Role.JUDGE, name="judge-1", argv=tree_command(pipe, "crash")))
        for _ in range(3):
            await watch.stands()
    await watch.all_gone()
    crashed = [change for change in changes if change.state is RoleState.WAITING]
    assert [(c.num_restarts, c.note, c.exit_code) for c in crashed[:2]] == [(1, "it broke", 3), (2, "it broke", 3)]
    assert changes[-1].state is RoleState.STOPPED


async def test_what_was_waited_for_is_no_reason_of_a_good_end(tmp_path: Path) -> None:
    changes: list[RoleStatus] = []
    code = f"""
        from pathlib import Path
        again = Path({str(tmp_path / "again")!r})
        if not again.exists():
            again.touch()
            raise SystemExit("no server yet")
    """
    async with supervise(tmp_path, on_change=changes.append, policy=_SOON) as supervisor:
        supervisor.start(python("judge-1", code))
        assert (await supervisor.wait("judge-1")).note == ""
    assert "no server yet" in {change.note for change in changes}


async def test_the_output_of_a_role_that_runs_on_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_file, "_LIMIT_BYTES", 100)
    monkeypatch.setattr(output_file, "_LOOK_S", 0.01)
    code = """
        import os, time
        print("x" * 200, flush=True)
        while os.fstat(1).st_size:
            time.sleep(0.01)
        print("goes on", flush=True)
    """
    async with supervise(tmp_path) as supervisor:
        supervisor.start(python("browser-1", code))
        with anyio.fail_after(HANGS_S):
            await supervisor.wait("browser-1")
    assert (tmp_path / "browser-1.out").read_text() == "goes on\n"
    assert (tmp_path / "browser-1.out.1").read_text() == "x" * 99 + "\n"


async def test_a_killed_role_is_restarted(tmp_path: Path, pipe: Path, watch: Watch) -> None:
    changes: list[RoleStatus] = []
    async with supervise(tmp_path, on_change=changes.append, policy=_SOON) as supervisor:
        supervisor.start(RoleSpec(role=Role.BROWSER, name="browser-1", argv=tree_command(pipe)))
        first = await watch.stands()
        assert supervisor.pid("browser-1") == first["pid"]
        os.kill(first["pid"], signal.SIGKILL)
        second = await watch.stands()
        assert supervisor.pid("browser-1") == second["pid"] != first["pid"]
        assert supervisor.statuses[0].num_restarts == 1
    await watch.all_gone()
    assert [c.note for c in changes if c.state is RoleState.WAITING] == ["killed by SIGKILL"]


async def test_a_persons_mistake_is_shown_and_not_repeated(tmp_path: Path) -> None:
    code = "import sys; print('no model at /x: make one first', file=sys.stderr); sys.exit(78)"
    async with supervise(tmp_path, policy=_SOON) as supervisor:
        supervisor.start(python("policy-1", code, Role.POLICY))
        with anyio.fail_after(HANGS_S):
            status = await supervisor.wait("policy-1")
    assert (status.state, status.note, status.num_restarts) == (RoleState.FATAL, "no model at /x: make one first", 0)


async def test_a_finished_role_stays_finished_and_its_name_can_be_used_again(tmp_path: Path) -> None:
    async with supervise(tmp_path, policy=_SOON) as supervisor:
        for _ in range(2):
            supervisor.start(python("feeder-1", "pass", Role.FEEDER))
            with pytest.raises(ValueError, match="running already"):
                supervisor.start(python("feeder-1", "pass", Role.FEEDER))
            with anyio.fail_after(HANGS_S):
                assert (await supervisor.wait("feeder-1")).state is RoleState.FINISHED


async def test_a_role_knows_that_its_output_is_kept(tmp_path: Path) -> None:
    code = f"import sys; from ops.processes.role_process import is_supervised; sys.exit({EXIT_FATAL} * is_supervised())"
    async with supervise(tmp_path) as supervisor:
        supervisor.start(RoleSpec(role=Role.JUDGE, name="judge-1", argv=(sys.executable, "-c", code)))
        with anyio.fail_after(HANGS_S):
            assert (await supervisor.wait("judge-1")).exit_code == EXIT_FATAL
    await anyio.run_process([sys.executable, "-c", code], env=millrace_environment())


async def test_the_server_is_stopped_behind_the_others(tmp_path: Path) -> None:
    stopped: list[str] = []
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    code = f"""
        import os, signal, sys, time
        def stop(*_):
            time.sleep(0.3)
            sys.exit(0)
        signal.signal(signal.SIGTERM, stop)
        with open({str(ready)!r}, "w") as pipe:
            pipe.write("x")
        time.sleep(600)
    """
    ended = lambda status: stopped.append(status.name) if status.state.ended else None  # noqa: E731
    async with supervise(tmp_path, on_change=ended) as supervisor:
        for role in (Role.SERVER, Role.BROWSER):
            supervisor.start(python(role.value, code, role))
            await anyio.to_thread.run_sync(ready.read_text)
    assert stopped == ["browser", "server"]


async def test_stubborn_roles_are_gone_within_the_grace_period_together(tmp_path: Path, pipe: Path, watch: Watch) -> None:
    async with supervise(tmp_path, grace_s=0.5) as supervisor:
        for index in range(3):
            supervisor.start(RoleSpec(role=Role.BROWSER, name=f"b-{index}", argv=tree_command(pipe, "stubborn")))
        for _ in range(3):
            await watch.stands()
        with anyio.fail_after(HANGS_S):
            await supervisor.stop()
            await watch.all_gone()


async def test_cancellation_stops_everything(tmp_path: Path, pipe: Path, watch: Watch) -> None:
    with anyio.CancelScope() as scope:
        async with supervise(tmp_path) as supervisor:
            supervisor.start(RoleSpec(role=Role.BROWSER, name="b", argv=tree_command(pipe)))
            await watch.stands()
            scope.cancel()
            await anyio.sleep_forever()
    assert supervisor.statuses[0].state is RoleState.STOPPED
    await watch.all_gone()


async def test_a_killed_supervisor_leaves_nothing(tmp_path: Path, pipe: Path, watch: Watch) -> None:
    program = """
        import sys, anyio
        from pathlib import Path
        from ops.processes.supervisor import RoleSpec, supervise
        from schemas.messages import Role
        async def main():
            async with supervise(Path(sys.argv[1])) as supervisor:
                supervisor.start(RoleSpec(role=Role.BROWSER, name="b", argv=tuple(sys.argv[2:])))
                await anyio.sleep_forever()
        anyio.run(main)
    """
    root = str(Path(__file__).parent.parent.parent)
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path), *tree_command(pipe)]
    with subprocess.Popen(command, cwd=root) as supervisor:  # noqa: ASYNC220 - has to be killed, not awaited
        await watch.stands()
        supervisor.kill()
        await watch.all_gone()


async def test_a_drained_role_finishes_what_it_does_and_is_not_started_again(tmp_path: Path) -> None:
    up = tmp_path / "up"
    os.mkfifo(up)
    program = f"""
        import signal
        from pathlib import Path
        signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGUSR1}})
        Path({str(up)!r}).write_text("up")
        signal.sigwait({{signal.SIGUSR1}})
        Path({str(tmp_path)!r}, "finished").touch()
    """
    async with supervise(tmp_path, policy=_SOON) as supervisor:
        supervisor.start(python("browser-1", program))
        with anyio.fail_after(HANGS_S):
            assert await anyio.to_thread.run_sync(up.read_text, abandon_on_cancel=True) == "up"
            supervisor.drain()
            status = await supervisor.wait("browser-1")
    assert (status.state, status.exit_code, status.num_restarts) == (RoleState.FINISHED, 0, 0)
    assert (tmp_path / "finished").exists()


@pytest.mark.parametrize(("end", "note"), [("3", "it broke"), ("-9", "killed by SIGKILL"), (f"{EXIT_RESTART}", "")])
async def test_a_role_that_was_told_to_leave_is_not_started_again_however_it_ends(end: str, note: str, tmp_path: Path) -> None:
    up = tmp_path / "up"
    os.mkfifo(up)
    program = f"""
        import os, signal, sys
        from pathlib import Path
        signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGUSR1}})
        Path({str(up)!r}).write_text("up")
        signal.sigwait({{signal.SIGUSR1}})
        print("it broke", file=sys.stderr, flush=True)
        os._exit({end}) if {end} > 0 else os.kill(os.getpid(), -({end}))
    """
    async with supervise(tmp_path, policy=_SOON) as supervisor:
        supervisor.start(python("policy-1", program, Role.POLICY))
        with anyio.fail_after(HANGS_S):
            await anyio.to_thread.run_sync(up.read_text, abandon_on_cancel=True)
            supervisor.drain()
            status = await supervisor.wait("policy-1")
    assert (status.state, status.note, status.num_restarts) == (RoleState.STOPPED, note, 0)


async def test_a_role_that_leaves_to_come_back_is_started_at_once_and_one_that_waits_is_let_go(tmp_path: Path) -> None:
    waits = RestartPolicy(first_delay_s=1000.0, longest_delay_s=1000.0)
    program = f"""
        import sys
        from pathlib import Path
        been = Path({str(tmp_path)!r}, "been")
        code = 1 if been.exists() else {EXIT_RESTART}
        been.touch()
        sys.exit(code)
    """
    crashed = anyio.Event()

    def noted(status: RoleStatus) -> None:
        if status.exit_code == 1 and status.state is RoleState.WAITING:
            crashed.set()

    with anyio.fail_after(HANGS_S):
        async with supervise(tmp_path, on_change=noted, policy=waits) as supervisor:
            supervisor.start(python("browser-1", program))
            await crashed.wait()
            supervisor.drain("browser-1")
            assert (await supervisor.wait("browser-1")).state is RoleState.STOPPED


def test_one_that_was_told_to_leave_before_it_could_listen_is_finished() -> None:
    for ended in (128 + signal.SIGUSR1, -signal.SIGUSR1):  # the role, or its guard
        assert Restarts().after_exit(exit_code(ended), 0.1) == (Restarts(), Finished())
