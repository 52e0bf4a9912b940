"""Trainer processes that start in a second: forked off a process that has loaded torch and DeepSpeed, and done nothing else.

What is forked runs `millrace trainer` from its first line, under a process id of its own that can be killed.
"""

import multiprocessing
import os
import sys
from dataclasses import replace
from multiprocessing import forkserver, resource_tracker
from multiprocessing.process import BaseProcess
from pathlib import Path

from ops.processes.guard import MARKER
from tests.deadlines import HANGS_S

_LOADED = (
    "deepspeed",
    "ops.cli",
    "ops.roles.running",
    "ops.roles.deepspeed_trainer",
    "transformers.models.qwen3_vl.modeling_qwen3_vl",
)


def start_trainer(run_dir: Path, name: str) -> BaseProcess:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_LOADED, __name__])
    process = context.Process(target=_run, args=(str(run_dir), name), name=name)
    process.start()
    return process


def stop_forking() -> None:
    """Ends the process that trainers are forked off, which holds them in memory; the next start makes another."""
    # There is no public way; the standard library's own tests take this one.
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
    resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]


def _run(run_dir: str, name: str) -> None:
    from bus.jetstream import bus, connection
    from ops.cli import main

    # Nobody starts it again: it outwaits a server that a full machine holds up.
    connection._CONNECT_S = HANGS_S
    bus._HELLO = replace(bus._HELLO, total_s=HANGS_S)
    bus._LIMITS *= 30
    output = os.open(f"{run_dir}/logs/{name}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # As if under a guard: the process that is killed is the trainer itself.
    os.environ[MARKER] = str(os.getppid())
    sys.exit(main(["trainer", "--run-dir", run_dir, "--name", name]))
