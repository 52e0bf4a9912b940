"""A process ends with its own code, whatever the threads of libraries are in the middle of."""

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
