"""The command line: every subcommand explains itself, and every end has its exit code."""

import os
import signal
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import pytest
import structlog

from ops import cli
from ops.configuration import load_config
from ops.guard import MARKER
from ops.interruptible import run
from ops.role_process import describe_end, millrace_command, millrace_environment, open_output
from ops.run_folder import RunFolder
from schemas.config import Config
from schemas.errors import BusUnavailable, ConfigurationError, MismatchExceeded
from schemas.messages import Role

_ROLES = ("server", "feeder", "browser", "policy", "judge", "trainer")
_FILES = ("archive", "import", "export", "replay")
_COMMANDS = (
    "quickstart",
    *_ROLES,
    *_FILES,
    "evaluate",
    "doctor",
    "audit",
    "chaos",
    "watch",
    "schema",
    "dead-letters",
    "streams",
    "cluster",
)


@pytest.mark.parametrize("command", _COMMANDS)
def test_every_subcommand_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert f"millrace {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong", [("--fault-interval", "0"), ("--episodes", "0"), ("--duration", "-1"), ("--limit", "inf"), ("--episodes", "many")]
)
def test_a_drill_of_senseless_numbers_is_refused(wrong: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["chaos", *wrong])
    assert wrong[0] in capsys.readouterr().err


def test_an_import_makes_its_run_with_overrides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The source is missing; what is behind the options was understood."""
    target = tmp_path / "second"
    given = [
        "import",
        str(tmp_path / "none"),
        "--run-dir",
        str(target),
        "--config",
        "simulation",
        "--set",
        "bus_config.run=second",
    ]
    try:
        assert cli.main(given) == 78
    finally:
        structlog.reset_defaults()
    assert "holds neither an archive nor a run" in capsys.readouterr().err
    assert RunFolder(target).load().bus_config.run == "second"


def _raising(*errors: Exception) -> int:
    async def body() -> int:
        raise errors[0] if len(errors) == 1 else ExceptionGroup("several", errors)

    return run(body)


def test_ends_become_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    async def done() -> int:
        return 5

    assert run(done) == 5
    assert _raising(ConfigurationError("write x instead of y")) == 78
    assert capsys.readouterr().err == "millrace: write x instead of y\n"
    assert _raising(BusUnavailable("no server"), ExceptionGroup("inner", [MismatchExceeded("0.3 nats")])) == 78
    assert capsys.readouterr().err == "millrace: 0.3 nats\n"
    assert _raising(BusUnavailable("no server")) == 1
    assert capsys.readouterr().err == "millrace: BusUnavailable: no server\n"
    assert _raising(KeyError("x")) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_cancels_and_cleans_up(number: signal.Signals, code: int) -> None:
    program = """
        import sys, anyio
        from ops.interruptible import run
        async def body():
            try:
                print("up", flush=True)
                await anyio.sleep_forever()
            finally:
                print("down", flush=True)
        sys.exit(run(body))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=millrace_environment(), text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        assert process.stdout.read() == "down\n"
        assert process.wait(10) == code


def test_a_role_started_by_hand_runs_under_a_guard_and_explains_a_mistake(tmp_path: Path) -> None:
    ended = subprocess.run(
        millrace_command(["browser", "--run-dir", str(tmp_path)]),
        env=millrace_environment(), cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (78, "")
    assert ended.stderr.startswith(f"millrace: {tmp_path} holds no run: give the --run-dir")


class _Roles(types.ModuleType):
    """Stands in for `ops.roles`: remembers what it was asked to run."""

    def __init__(self) -> None:
        super().__init__("ops.roles")
        self.asked: list[tuple[Role, Path, Config, str]] = []

    async def run_role(self, role: Role, run_dir: Path, config: Config, worker: str) -> None:
        self.asked.append((role, run_dir, config, worker))


@pytest.fixture
def roles(monkeypatch: pytest.MonkeyPatch) -> _Roles:
    roles = _Roles()
    monkeypatch.setitem(sys.modules, "ops.roles", roles)
    monkeypatch.setenv(MARKER, str(os.getppid()))
    return roles


def test_a_role_joins_the_stored_run(roles: _Roles, tmp_path: Path) -> None:
    RunFolder(tmp_path).create(load_config("update_online", ["bus_config.run=mine"]))
    command = ["browser", "--run-dir", str(tmp_path), "--name", "browser-2", "env_config.server_size=3"]
    assert cli.main(command) == 0
    [(role, run_dir, config, worker)] = roles.asked
    assert (role, run_dir, worker) == (Role.BROWSER, tmp_path, "browser-2")
    assert (config.bus_config.run, config.env_config.server_size) == ("mine", 3)


def test_a_role_with_a_recipe_creates_the_run(roles: _Roles, tmp_path: Path) -> None:
    assert cli.main(["server", "--config", "rollout_test", f"save_path={tmp_path}/new"]) == 0
    [(_, run_dir, config, worker)] = roles.asked
    assert run_dir == tmp_path / "new"
    assert RunFolder(run_dir).load() == config
    assert worker.startswith("server-")


def test_a_name_that_is_no_subject_token_is_refused(roles: _Roles, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["judge", "--config", "default", "--run-dir", str(tmp_path), "--name", "a.b"]) == 78
    assert "worker name 'a.b'" in capsys.readouterr().err
    assert roles.asked == []


def test_an_end_is_described_by_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "x.out"
    assert describe_end(1, path) == "ended with exit code 1"
    with open_output(path) as output:
        output.write(b"Traceback\nRuntimeError: it broke\n\n")
    assert describe_end(1, path) == "RuntimeError: it broke"
    assert describe_end(137, path) == "killed by SIGKILL"
