"""Log lines: bounded, complete, and without secrets."""

import io
import json
from contextlib import ExitStack
from pathlib import Path

import pytest
import structlog

from ops.run.log_file import BoundedLog
from ops.run.logs import log_path, quiet_logs, role_logs
from tests.support.texts.any_text import OBEYED


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_every_line_says_who_speaks_and_people_get_a_short_one(tmp_path: Path) -> None:
    terminal = _Terminal()
    with role_logs(tmp_path / "logs" / "b.log", run="r", role="browser", worker="browser-1", stream=terminal):
        structlog.get_logger().info("episode_ended", episode="e-1", reward=1.0)
    line = json.loads((tmp_path / "logs" / "b.log").read_text())
    assert line.pop("timestamp") > 0
    assert line == {
        "run": "r", "role": "browser", "worker": "browser-1", "level": "info",
        "event": "episode_ended", "episode": "e-1", "reward": 1.0,
    }  # fmt: skip
    assert terminal.getvalue().endswith(" browser-1 episode_ended episode=e-1 reward=1.0\n")


def test_without_a_terminal_only_warnings_are_shown(tmp_path: Path) -> None:
    plain = io.StringIO()
    with role_logs(tmp_path / "b.log", run="r", role="browser", worker="w", stream=plain):
        structlog.get_logger().info("quiet")
        structlog.get_logger().warning("loud")
    assert "loud" in plain.getvalue()
    assert "quiet" not in plain.getvalue()
    assert len((tmp_path / "b.log").read_text().splitlines()) == 2


def test_everything_is_shown_where_somebody_reads_it(tmp_path: Path) -> None:
    pod = io.StringIO()
    with role_logs(tmp_path / "b.log", run="r", role="browser", worker="w", stream=pod, is_read=True):
        structlog.get_logger().info("quiet")
        structlog.get_logger().debug("silent")
    assert "quiet" in pod.getvalue()
    assert "silent" not in pod.getvalue()


def test_secrets_are_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-abcdefgh123")
    terminal = _Terminal()
    seed = "SU" + "A" * 56
    with role_logs(tmp_path / "b.log", run="r", role="judge", worker="w", stream=terminal):
        log = structlog.get_logger()
        log.info("connected", url="nats://me:hunter22@host:4222", password="hunter22", nkey=seed, prompt_tokens=7, seed=3)
        log.error("failed", reason=f"key sk-abcdefgh123 refused, seed {seed}", detail={"header": "sk-abcdefgh123"})
    written = (tmp_path / "b.log").read_text() + terminal.getvalue()
    for secret in ("hunter22", "sk-abcdefgh123", seed):
        assert secret not in written
    assert json.loads(written.splitlines()[0]) | {"timestamp": 0} == {
        "timestamp": 0, "run": "r", "role": "judge", "worker": "w", "level": "info", "event": "connected",
        "url": "nats://***@host:4222", "password": "***", "nkey": "***", "prompt_tokens": 7, "seed": 3,
    }  # fmt: skip


def test_a_role_that_fails_leaves_its_traceback(tmp_path: Path) -> None:
    def fail() -> None:
        with role_logs(tmp_path / "b.log", run="r", role="judge", worker="w", stream=io.StringIO()):
            raise ZeroDivisionError("nothing to divide by")

    with pytest.raises(ZeroDivisionError):
        fail()
    line = json.loads((tmp_path / "b.log").read_text())
    assert line["event"] == "role_failed"
    assert "nothing to divide by" in line["exception"]


def test_a_log_never_outgrows_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "b.log"
    for _ in range(2):  # the second writer finds the first one's file
        log = BoundedLog(path, limit_bytes=2000)
        for index in range(100):
            log.write_line(f"line {index}")
        log.close()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["b.log", "b.log.1"]
    assert sum(file.stat().st_size for file in files) <= 2000
    assert path.read_text().endswith("line 99\n")


def test_a_log_goes_on_though_somebody_removed_its_file(tmp_path: Path) -> None:
    path = tmp_path / "b.log"
    log = BoundedLog(path, limit_bytes=20)
    log.write_line("one line")
    path.unlink()
    log.write_line("the next")
    log.close()
    assert path.read_text() == "the next\n"


def test_a_log_goes_on_after_a_rotation_that_failed(tmp_path: Path) -> None:
    path, hindrance = tmp_path / "b.log", tmp_path / "b.log.1"
    log = BoundedLog(path, limit_bytes=20)
    log.write_line("one")
    hindrance.mkdir()
    log.write_line("a lost one")
    log.write_line("two")
    hindrance.rmdir()
    log.write_line("and three")
    log.close()
    assert path.read_text() == "and three\n"
    assert hindrance.read_text() == "one\ntwo\n"


def test_file_names_begin_with_the_role() -> None:
    assert log_path(Path("l"), "judge", "judge-1") == Path("l/judge-1.log")
    assert log_path(Path("l"), "judge", "anna") == Path("l/judge-anna.log")


def test_a_command_says_warnings_only_and_leaves_logging_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    before = structlog.get_config()
    with quiet_logs():
        structlog.get_logger().info("connected")
        structlog.get_logger().warning("waits")
    said = capsys.readouterr()
    assert said.out == ""
    assert "waits" in said.err
    assert "connected" not in said.err
    assert structlog.get_config() == before


HOSTILE = "page \ud83d\x1b[2J\x9b1m\u202e[/]\x00" + "x" * 300_000


@pytest.mark.parametrize("verbose", [True, False])
def test_no_words_of_others_are_obeyed_or_end_a_role(tmp_path: Path, capfd: pytest.CaptureFixture[str], verbose: bool) -> None:
    def fail() -> None:
        raise ValueError(HOSTILE)

    with (tmp_path / "terminal").open("w", encoding="utf-8") as strict, ExitStack() as stack:
        if verbose:
            stack.enter_context(role_logs(tmp_path / "b.log", run="r", role="b", worker="w", stream=strict, verbose=True))
        else:
            stack.enter_context(quiet_logs())
        log = structlog.get_logger()
        log.warning("page_failed", reason=HOSTILE, title=HOSTILE)
        try:
            fail()
        except ValueError as error:
            log.error("judge_raised", exc_info=error)
    printed = (tmp_path / "terminal").read_text(encoding="utf-8") + capfd.readouterr().err
    assert "page_failed" in printed
    assert "ValueError: page" in printed
    assert not set(printed) & (OBEYED - {"\n"})
    assert len(printed) < 30_000
    if verbose:
        assert json.loads((tmp_path / "b.log").read_text().splitlines()[0])["reason"] == HOSTILE
