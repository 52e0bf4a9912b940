"""A process ends with its own code, whatever the threads of libraries are in the middle of."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import HANGS_S

pytestmark = pytest.mark.integration
_ROOT = Path(__file__).parents[2]
_CALCULATES = """
import atexit, sys, threading, torch
from ops.processes.process_end import leave

matrix, begun = torch.zeros(200, 200), threading.Event()

def calculate():
    while True:
        torch.mm(matrix, matrix)
        begun.set()

if {calculates}:
    threading.Thread(target=calculate, daemon=True).start()
    begun.wait()
atexit.register(print, "at the end")
print("done")
leave(3)
"""


@pytest.mark.parametrize("calculates", [True, False])
def test_it_ends_with_its_code(calculates: bool) -> None:
    command = [sys.executable, "-c", _CALCULATES.format(calculates=calculates)]
    ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert (ended.returncode, ended.stdout) == (3, "done\nat the end\n"), ended.stderr


_HANGS = """
import atexit, ctypes, sys, threading
from ops.processes import process_end

process_end._GRACE_S, process_end._ALARM_S = {bounds}
if {has_thread}:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
atexit.register({hangs})
process_end.leave(3)
"""

_GRACE, _ALARM = (0.2, HANGS_S), (HANGS_S, 0.2)
"""One of the two bounds is soon over, the other is not."""


@pytest.mark.parametrize("has_thread", [True, False])
@pytest.mark.parametrize(
    ("hangs", "bounds", "code"),
    [
        ("threading.Event().wait", _GRACE, 3),
        ("ctypes.PyDLL(None).pause", _ALARM, -signal.SIGALRM),  # which lets no other thread run
    ],
)
def test_it_ends_though_a_library_hangs_at_its_end(
    has_thread: bool, hangs: str, bounds: tuple[float, float], code: int
) -> None:
    command = [sys.executable, "-c", _HANGS.format(has_thread=has_thread, hangs=hangs, bounds=bounds)]
    ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert ended.returncode == code, ended.stderr


def test_it_ends_though_a_thread_never_does() -> None:
    waits = "atexit.register(print)\nthreading.Thread(target=threading.Event().wait).start()"
    program = _HANGS.format(has_thread=False, hangs="print", bounds=_GRACE).replace("atexit.register(print)", waits)
    ended = subprocess.run([sys.executable, "-c", program], cwd=_ROOT, check=False, timeout=HANGS_S)
    assert ended.returncode == 3
