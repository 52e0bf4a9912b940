"""The ranks of one trainer: one job, whose end is that of rank 0 or of whoever failed."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ops.processes.restarts import EXIT_RESTART
from tests.deadlines import HANGS_S


def ranks(count: int, program: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", "-c", textwrap.dedent(program)]
    return subprocess.Popen(
        [sys.executable, "-m", "ops.launch.ranks", str(count), "--", *command], cwd=Path(__file__).parents[2]
    )


def test_every_rank_knows_its_place_and_all_end_well(tmp_path: Path) -> None:
    program = f"""
        import os
        from pathlib import Path
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
        Path({str(tmp_path)!r}, os.environ["RANK"]).write_text(" ".join(os.environ[name] for name in names))
    """
    assert ranks(2, program).wait(HANGS_S) == 0
    first, second = ((tmp_path / str(rank)).read_text().split() for rank in (0, 1))
    assert (first[:4], second[:4]) == (["0", "0", "2", "127.0.0.1"], ["1", "1", "2", "127.0.0.1"])
    assert first[4] == second[4]


@pytest.mark.parametrize(("failing", "expected"), [(0, 3), (1, 3)])
def test_one_that_fails_ends_the_others(failing: int, expected: int) -> None:
    program = f"""
        import os, sys, time
        if os.environ["RANK"] == "{failing}":
            sys.exit(3)
        time.sleep(1000)
    """
    assert ranks(2, program).wait(HANGS_S) == expected


def test_a_drain_reaches_rank_0_and_its_word_to_be_started_again_comes_out(tmp_path: Path) -> None:
    up, over = tmp_path / "up", tmp_path / "over"
    for path in (up, over):
        os.mkfifo(path)
    program = f"""
        import os, signal, sys
        from pathlib import Path
        if os.environ["RANK"] != "0":
            Path({str(over)!r}).read_text()
            sys.exit(0)
        signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGUSR1}})
        Path({str(up)!r}).write_text("up")
        signal.sigwait({{signal.SIGUSR1}})
        Path({str(over)!r}).write_text("over")
        sys.exit({EXIT_RESTART})
    """
    job = ranks(2, program)
    assert up.read_text() == "up"
    job.send_signal(signal.SIGUSR1)
    assert job.wait(HANGS_S) == EXIT_RESTART
