"""The processes of one training job on this machine, as a launcher starts them."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.deadlines import HANGS_S

NUM_RANKS = 2


def run_ranks(program: str, *arguments: Path) -> str:
    """Runs a Python program on every rank; returns what rank 0 printed, once all have ended well."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {
        **os.environ,
        "WORLD_SIZE": str(NUM_RANKS),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "PYTHONPATH": str(Path.cwd()),
    }
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(NUM_RANKS)
    ]
    try:
        outputs = [process.communicate(timeout=HANGS_S)[0] for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    assert [process.returncode for process in ranks] == [0] * NUM_RANKS, "".join(output[-2000:] for output in outputs)
    return outputs[0]
