"""Chromium with its sandbox, as an ordinary user without new privileges, under the profile that pods have."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser_workers.chromium.process.executable import find_chromium
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.integration
_UNDER = """
import ctypes, json, os, sys
import pyseccomp
from ops.launch.seccomp import chromium_seccomp

home, makes_namespaces, *command = sys.argv[1:]
refusing = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
for rule in json.loads(chromium_seccomp())["syscalls"]:
    for name in rule["names"]:
        try:
            refusing.add_rule(pyseccomp.ERRNO(rule["errnoRet"]), name)
        except (OSError, RuntimeError):
            pass  # of other machines
if makes_namespaces == "no":
    NOT_PERMITTED, UNKNOWN, NEW_USER = 1, 38, 0x10000000
    refusing.add_rule(pyseccomp.ERRNO(NOT_PERMITTED), "unshare")
    refusing.add_rule(pyseccomp.ERRNO(UNKNOWN), "clone3")
    refusing.add_rule(pyseccomp.ERRNO(NOT_PERMITTED), "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, NEW_USER, NEW_USER))
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
os.environ["HOME"] = home
NO_NEW_PRIVILEGES = 38
assert ctypes.CDLL(None).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
refusing.load()
os.execv(command[0], command)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """Everybody's: pytest's own folders are root's alone, where root runs it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def dumped(home: Path, *, makes_namespaces: bool) -> subprocess.CompletedProcess[str]:
    """A page, as Chromium prints it."""
    command = [str(find_chromium("")), "--headless", "--disable-gpu", "--dump-dom", f"--user-data-dir={home}/profile"]
    return subprocess.run(
        [sys.executable, "-c", _UNDER, str(home), "yes" if makes_namespaces else "no", *command, "data:text/html,<p>hello"],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def test_it_starts_and_shows_a_page(home: Path) -> None:
    shown = dumped(home, makes_namespaces=True)
    assert "<p>hello</p>" in shown.stdout, shown.stderr[-2000:]


def test_without_namespaces_it_would_not(home: Path) -> None:
    """As under the profiles that runtimes have; so what it makes above is its sandbox."""
    refused = dumped(home, makes_namespaces=False)
    assert "<p>hello</p>" not in refused.stdout
    assert "No usable sandbox" in refused.stderr
