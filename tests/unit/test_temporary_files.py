"""Temporary files that outlive no process: real processes, some of which are killed."""

import errno
import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from ops.processes.temporary_files import own_temporary_files

_PROCESS = """
import sys, tempfile
from ops.processes.temporary_files import own_temporary_files
with own_temporary_files("browser") as folder:
    tempfile.mkdtemp(prefix="profile-")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        monkeypatch.setenv("TMPDIR", name)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield Path(name)


@contextmanager
def another() -> Iterator[tuple["Popen[bytes]", Path]]:
    """A process with such a folder, in which something is."""
    with Popen([sys.executable, "-c", _PROCESS], stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        folder = Path(os.fsdecode(process.stdout.readline().strip()))
        try:
            yield process, folder
        finally:
            process.kill()


def test_they_are_gone_with_the_context(root: Path) -> None:
    with own_temporary_files("browser") as folder:
        assert (folder.parent, folder.stat().st_mode & 0o777) == (root, 0o700)
        assert Path(tempfile.mkdtemp()).parent == folder == Path(os.environ["TMPDIR"])
    assert (tempfile.gettempdir(), os.environ["TMPDIR"]) == (str(root), str(root))
    assert list(root.iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next_of_its_kind(root: Path) -> None:
    with another() as (process, left), another() as (_, alive):
        process.kill()
        process.wait()
        assert list(left.iterdir())
        with own_temporary_files("judge"):
            assert left.exists(), "another kind's"
        with own_temporary_files("browser") as own:
            assert set(root.iterdir()) == {alive, own}
            assert list(alive.iterdir())


def test_a_link_is_not_followed(root: Path) -> None:
    (root / "elsewhere").mkdir()
    (root / "elsewhere/kept").touch()
    (root / "millrace.browser.12345678").symlink_to(root / "elsewhere")
    with own_temporary_files("browser"):
        pass
    assert [path.name for path in (root / "elsewhere").iterdir()] == ["kept"]


def test_on_a_disk_without_locks_nothing_is_taken_for_left(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(lock: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    with another() as (process, left):
        process.kill()
        process.wait()
        monkeypatch.setattr(fcntl, "flock", cannot)
        with own_temporary_files("browser") as own:
            assert set(root.iterdir()) == {left, own}


def test_one_that_is_taken_for_left_before_it_is_locked_is_made_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, make = [], tempfile.mkdtemp

    def makes(**how: str) -> str:
        made.append(Path(make(**how)))
        if len(made) == 1:
            made[0].rmdir()
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", makes)
    with own_temporary_files("browser") as folder:
        assert made == [made[0], folder]
        assert folder.exists()


def test_a_path_that_would_be_too_long_for_sockets_is_not_taken(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = root / ("x" * 30)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    with own_temporary_files("browser") as folder:
        assert (folder, os.environ["TMPDIR"], list(long.iterdir())) == (long, str(long), [])
