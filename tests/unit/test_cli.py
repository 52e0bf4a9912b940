"""The command line: every subcommand explains itself, and every end has its exit code."""

import os
import signal
import subprocess
import sys
import textwrap
import types
from importlib.metadata import version
from pathlib import Path

import pytest

from ops import cli
from ops.commands.arguments import RUN_DIR
from ops.config.loading import load_config
from ops.processes.guard import MARKER
from ops.processes.interruptible import run
from ops.processes.role_process import describe_end, millrace_command, millrace_environment
from ops.run.folder import RunFolder
from schemas.config import Config
from schemas.errors import BusUnavailable, ConfigurationError, MismatchExceeded
from schemas.messages import Role
from tests.deadlines import HANGS_S

_COMMANDS = [command.name for commands in cli.COMMANDS.values() for command in commands]


@pytest.mark.parametrize("command", _COMMANDS)
def test_every_subcommand_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert f"millrace {command}" in capsys.readouterr().out


@pytest.mark.parametrize("command", _COMMANDS)
@pytest.mark.parametrize("width", [80, 120])
def test_the_help_of_a_command_fits_the_terminal(
    command: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > width] == []


def test_a_mistyped_command_is_told_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    for written, said in (("qickstart", "write quickstart\n"), ("zzz", "write millrace --help, which lists them\n")):
        with pytest.raises(SystemExit) as ended:
            cli.main([written])
        assert ended.value.code == 2
        assert capsys.readouterr().err.endswith(f"there is no command {written!r}: {said}")


def test_alone_it_lists_the_commands_and_it_tells_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (((), "train a model made on the spot"), (("--version",), f"millrace {version('millrace')}\n")):
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        assert ended.value.code == 0
        assert said in capsys.readouterr().out


@pytest.mark.parametrize("width", [80, 120])
def test_the_help_lists_every_command_once_in_the_width_of_the_terminal(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    listed = [line[:16].strip() for line in lines if line.startswith("  ") and line[2].isalpha()]
    assert sorted(listed) == sorted(_COMMANDS)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--web", "--once"], "leave these out"),
        (["--web", "--prometheus", "9464"], "leave these out"),
        (["--port", "9000"], "add --web"),
        (["--open"], "add --web"),
        (["--web", "--host", "0.0.0.0"], "give --tls-cert and --tls-key"),
        (["--prometheus", "9464", "--host", "0.0.0.0"], "give --tls-cert and --tls-key"),
        (["--web", "--tls-cert", "cert.pem"], "belong together"),
    ],
)
def test_a_monitor_that_cannot_be_as_it_was_asked_for(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["monitor", "--run-dir", str(tmp_path), *options]) == 78
    assert said in capsys.readouterr().err


def test_a_monitor_of_a_run_that_has_ended_says_how_to_look_at_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RunFolder(tmp_path).create(Config(), needed_bytes=0)
    assert cli.main(["monitor", "--run-dir", str(tmp_path)]) == 78
    assert f"millrace monitor --once --run-dir {tmp_path}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("nonsense", "there is no command 'nonsense'"),
        ("audit --run runs/x", "millrace audit: error: unrecognized arguments: --run"),
        ("audit a.b=1", "unrecognized arguments: a.b=1"),
        ("chaos --episodes -1", "--episodes: '-1' is not a whole number of 1 or more"),
        ("chaos --fault-interval -2", "--fault-interval: '-2' is not above 0"),
        ("chaos --duration nan", "--duration: 'nan' is not above 0"),
        ("quickstart --seed -1", "--seed: '-1' is not a whole number of 0 or more"),
        ("replay runs/x --speed -1", "--speed: '-1' is not above 0"),
        ("cluster --out c --server a --client-port 70000", "'70000' is not a port"),
        ("dead-letters show x", "'x' is not a whole number"),
        ("schema --num-shards 0", "--num-shards: '0' is not"),
        ("eval", "write one of MODEL, --api NAME and --compare RESULT"),
        ("eval 4 --api m", "write one of MODEL, --api NAME and --compare RESULT"),
        ("eval 4 --base-url https://h", "--base-url is of a model behind an endpoint"),
        ("audit runs/x --run-dir runs/y", "runs/x and runs/y are several folders: write one"),
        ("browser runs/x a.b=1 --run-dir runs/y", "runs/x and runs/y are several folders: write one"),
        ("view runs/x --run-dir runs/y", "runs/x and runs/y are several folders: write one"),
        ("watch nothing", "choose from 'trajectories', 'judgements'"),
    ],
)
def test_wrong_arguments_are_refused_by_the_command_itself(wrong: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(wrong.split())
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("audit --run-dir none", "none holds no run: give the --run-dir of one that was created"),
        ("audit --run-dir file", "file holds no run"),
        ("watch --run-dir none", "none holds no run"),
        ("watch --run-dir run --version 7-3", "write one as 3, or several as 3-7"),
        ("watch --run-dir run --from 9999999999d", "write beginning, new"),
        ("watch --run-dir run --screenshots file", "file cannot be made (File exists): choose another folder"),
        ("watch checkpoints --run-dir run --split train", "only trajectories, judgements can"),
        ("report none", "none holds neither an archive nor a run"),
        ("report run --since yesterday", "--since yesterday is no time"),
        ("eval 4 --run-dir none", "none holds no run"),
        ("eval 4 --run-dir run top_p=1", "top_p is not a key of the configuration; did you mean policy_config.top_p"),
        ("eval 4 --run-dir run", "write a version that is kept (0) or a folder"),
        ("eval none --config default", "none is not the folder of a model"),
        ("eval --api m --base-url http://example.org/v1", "--base-url has to be https://host/path"),
        ("eval --api m --base-url https://h --key-env NO_SUCH_KEY", "NO_SUCH_KEY is not set"),
        ("eval --compare file none", "is no result of millrace eval"),
        ("chaos --out file", "file/logs cannot be made (Not a directory): choose another folder"),
        ("chaos --out run", "run holds a run already: choose another folder with --out"),
        ("chaos --kinds nonsense", "write some of kill, stop"),
        ("chaos --out new --kinds kill --episodes 2 x.y=1", "x.y is not a key of the configuration"),
        ("quickstart --run-dir file", "file cannot be written (File exists): choose another folder"),
        ("archive --verify none", "none holds no archive: give the folder that"),
        ("archive --once --run-dir run archive_config.foldr=x", "did you mean archive_config.folder?"),
        ("import none --run-dir run", "none holds neither an archive nor a run"),
        ("export none --format hf --out new", "none holds neither an archive nor a run"),
        ("streams --config nope", "there is no recipe 'nope'"),
        ("cluster --out file --server a", "file cannot be written"),
        ("cluster --out new --server a --client-port 6222", "have to differ: write another one"),
    ],
)
def test_a_mistake_ends_with_one_sentence_that_says_what_to_write(
    wrong: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    RunFolder(tmp_path / "run").create(load_config("default"))
    (tmp_path / "file").touch()
    assert cli.main(wrong.split()) == 78
    [sentence] = [line for line in capsys.readouterr().err.splitlines() if line]
    assert sentence.startswith("millrace: ")
    assert said in sentence


@pytest.mark.parametrize("given", ["runs/x", "--run-dir runs/x"])
@pytest.mark.parametrize("command", ["audit", "dead-letters list", "watch judgements", "export-model --out m"])
def test_a_runs_folder_is_a_word_or_an_option(command: str, given: str) -> None:
    assert cli.parse([*command.split(), *given.split()]).run_dir == Path("runs/x")


@pytest.mark.parametrize("given", ["runs/x a.b=1", "a.b=1 runs/x", "--run-dir runs/x a.b=1", "a.b=1 --run-dir runs/x"])
@pytest.mark.parametrize("command", ["browser", "quickstart", "rejudge", "monitor", "archive", "import archive", "streams"])
def test_a_runs_folder_stands_anywhere_among_the_overrides(command: str, given: str) -> None:
    options = cli.parse([*command.split(), *given.split()])
    assert (options.run_dir, options.overrides) == (Path("runs/x"), ["a.b=1"])


@pytest.mark.parametrize("command", ["view", "report", "calibrate --against r", "export --format hf --out o"])
def test_a_source_is_a_word_or_an_option_and_the_quickstarts_run_without_one(command: str) -> None:
    assert cli.parse([*command.split(), "runs/x"]).source == Path("runs/x")
    assert cli.parse([*command.split(), "--run-dir", "runs/x"]).source == Path("runs/x")
    assert cli.parse(command.split()).source == Path("runs/quickstart")


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
        from ops.processes.interruptible import run
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
        assert process.wait(HANGS_S) == code


def test_a_role_started_by_hand_runs_under_a_guard_and_explains_a_mistake(tmp_path: Path) -> None:
    ended = subprocess.run(
        millrace_command(["browser", "--run-dir", str(tmp_path)]),
        env=millrace_environment(), cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (78, "")
    assert ended.stderr.startswith(f"millrace: {tmp_path} holds no run: give the --run-dir")


class _Roles(types.ModuleType):
    """Stands in for `ops.roles.running`: remembers what it was asked to run."""

    def __init__(self) -> None:
        super().__init__("ops.roles.running")
        self.asked: list[tuple[Role, Path, Config, str]] = []

    async def run_role(self, role: Role, run_dir: Path, config: Config, worker: str) -> int:
        self.asked.append((role, run_dir, config, worker))
        return 0


@pytest.fixture
def roles(monkeypatch: pytest.MonkeyPatch) -> _Roles:
    roles = _Roles()
    monkeypatch.setitem(sys.modules, "ops.roles.running", roles)
    monkeypatch.setenv(MARKER, str(os.getppid()))
    return roles


def test_a_role_joins_the_stored_run(roles: _Roles, tmp_path: Path) -> None:
    RunFolder(tmp_path).create(load_config("update_online", ["bus_config.run=mine"]))
    command = [
        "browser",
        "env_config.server_size=3",
        "--run-dir",
        str(tmp_path),
        "feeder_config.seed=4",
        "--name",
        "browser-2",
    ]
    assert cli.main(command) == 0
    [(role, run_dir, config, worker)] = roles.asked
    assert (role, run_dir, worker) == (Role.BROWSER, tmp_path, "browser-2")
    assert (config.bus_config.run, config.env_config.server_size, config.feeder_config.seed) == ("mine", 3, 4)


def test_a_role_with_a_recipe_creates_the_run(roles: _Roles, tmp_path: Path) -> None:
    assert cli.main(["server", "--config", "rollout_test", f"save_path={tmp_path}/new"]) == 0
    [(_, run_dir, config, worker)] = roles.asked
    assert run_dir == tmp_path / "new"
    assert RunFolder(run_dir).load() == config
    assert worker.startswith("server-")


def test_a_run_that_is_made_of_keys_without_effect_says_so(
    roles: _Roles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = Path(__file__).parents[1] / "fixtures" / "webgym_tree" / "rollout_test.yaml"
    command = ["server", "--config", str(tree), "--run-dir", str(tmp_path / "run"), "--name", "server-1"]
    assert cli.main(command) == 0
    told = capsys.readouterr().err
    assert "keys_without_effect" in told
    assert "env_config.wait_timeout" in told
    assert f"millrace config {tree}" in told
    assert cli.main(command) == 0
    assert "keys_without_effect" not in capsys.readouterr().err, "the run was made before"


def test_a_name_that_is_no_subject_token_is_refused(roles: _Roles, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["judge", "--config", "default", "--run-dir", str(tmp_path), "--name", "a.b"]) == 78
    assert "worker name 'a.b'" in capsys.readouterr().err
    assert roles.asked == []


def test_an_end_is_described_by_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "x.out"
    assert describe_end(1, path) == "ended with exit code 1"
    path.write_text("Traceback\nRuntimeError: it broke\n\n")
    assert describe_end(1, path) == "RuntimeError: it broke"
    assert describe_end(137, path) == "killed by SIGKILL"


@pytest.mark.parametrize(
    ("command", "code"),
    [("--help", 0), ("schema", 0), ("blocklist add --help", 0), ("dead-letters list --run-dir none", 78)],
)
def test_a_reader_who_leaves_ends_no_command(command: str, code: int, tmp_path: Path) -> None:
    """As in `millrace schema 2>&1 | head -0`: what nobody reads is dropped, and the exit code stays."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            millrace_command(command.split()),
            stdout=writing,
            stderr=writing,
            env=millrace_environment(),
            cwd=tmp_path,
            timeout=HANGS_S,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.returncode == code


def test_what_a_reader_who_leaves_has_read_is_whole(tmp_path: Path) -> None:
    script = """
        from ops.console.standard_streams import readers_may_leave
        import os, sys
        with readers_may_leave():
            from rich.console import Console
            print("first", flush=True)
            os.read(0, 1)  # until the reader has left
            Console().print("second")
            print("third", flush=True)
            print("done", file=sys.stderr)
        """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=millrace_environment(), cwd=tmp_path) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"first\n"
        child.stdout.close()
        child.stdout = None
        _, told = child.communicate(b"x", timeout=HANGS_S)
    assert (child.returncode, told) == (0, b"done\n")


@pytest.mark.parametrize(
    ("words", "number", "folder"),
    [
        ("3", 3, RUN_DIR),
        ("3 runs/mine", 3, Path("runs/mine")),
        ("runs/mine 3", 3, Path("runs/mine")),
        ("3 --run-dir runs/mine", 3, Path("runs/mine")),
        ("--all", None, RUN_DIR),
        ("--all runs/mine", None, Path("runs/mine")),
        ("runs/mine --all", None, Path("runs/mine")),
        ("--all --run-dir runs/mine", None, Path("runs/mine")),
        ("runs/mine", None, Path("runs/mine")),
    ],
)
def test_letters_are_sent_again_from_a_folder_wherever_it_stands(words: str, number: int | None, folder: Path) -> None:
    options = cli.parse(["dead-letters", "resend", *words.split()])
    assert (options.number, options.run_dir, options.all) == (number, folder, "--all" in words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("0", "argument N: '0' is not a whole number of 1 or more"),
        ("runs/mine runs/other", "argument N: 'runs/other' is not a whole number of 1 or more"),
        ("runs/mine --run-dir runs/other", "runs/mine and runs/other are several folders: write one"),
    ],
)
def test_letters_that_nobody_named_are_not_sent(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.parse(["dead-letters", "resend", *words.split()])
    assert said in capsys.readouterr().err
