"""The processes of one training job on this machine, as a launcher starts them."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bus.server.ports import held_port
from tests.deadlines import HANGS_S

NUM_RANKS = 2


@dataclass(frozen=True)
class Ended:
    """One rank's process."""

    code: int
    output: str


def run_ranks(program: str, *arguments: Path, num_ranks: int = NUM_RANKS) -> str:
    """Runs a Python program on every rank; returns what rank 0 printed, once all have ended well."""
    ended = ended_ranks(program, *arguments, num_ranks=num_ranks)
    assert [each.code for each in ended] == [0] * num_ranks, "".join(each.output[-2000:] for each in ended)
    return ended[0].output


def ended_ranks(program: str, *arguments: Path, num_ranks: int = NUM_RANKS) -> Sequence[Ended]:
    """Runs a Python program on every rank until all have ended, well or not, without a launcher's help."""
    with held_port() as port:
        common = {
            **os.environ,
            "WORLD_SIZE": str(num_ranks),
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
            for rank in range(num_ranks)
        ]
        try:
            outputs = [process.communicate(timeout=HANGS_S)[0] for process in ranks]
        finally:
            for process in ranks:
                process.kill()
    return [Ended(process.returncode, output) for process, output in zip(ranks, outputs, strict=True)]
