"""Runs commands: until a signal comes, under a guard where it is a worker, in the run that it names."""

import argparse
import os
import re
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

from ops.commands.arguments import RUN_DIR

if TYPE_CHECKING:
    from ops.run.folder import RunFolder
    from schemas.config import Config


Handler = Callable[[argparse.Namespace], int]
"""Runs a command and returns its exit code; `given` in the namespace holds the arguments as they were typed."""


def interruptible(body: Callable[[argparse.Namespace], Awaitable[int]]) -> Handler:
    """An async command: quiet, ended by signals, its errors told as `ops.processes.interruptible` says."""

    @wraps(body)
    def handler(options: argparse.Namespace) -> int:
        from ops.processes.interruptible import run
        from ops.run.logs import quiet_logs

        with quiet_logs():
            return run(lambda: body(options))

    return handler


def guarded(body: Callable[[argparse.Namespace], Awaitable[int]]) -> Handler:
    """An interruptible command that first replaces this process by a guard of itself: killing that leaves nothing behind."""

    @wraps(body)
    def handler(options: argparse.Namespace) -> int:
        from ops.processes.guard import guard_command, is_guarded
        from ops.processes.interruptible import run
        from ops.processes.role_process import millrace_command, millrace_environment
        from ops.run.logs import quiet_logs

        if not is_guarded():
            argv = guard_command(millrace_command(options.given))
            os.execve(argv[0], argv, millrace_environment())  # noqa: S606
        with quiet_logs():
            return run(lambda: body(options))

    return handler


def joined_run(options: argparse.Namespace) -> "tuple[RunFolder, Config]":
    """The run's folder and this worker's configuration: with `--config` a folder without a run becomes one."""
    folder, config = planned_run(options)
    if folder.config.exists():
        folder.load()  # a run that cannot be read is none to join, whatever --config says
    else:
        folder.create(config)
        tell_idle_keys(options)
    return folder, config


def tell_idle_keys(options: argparse.Namespace) -> None:
    """Warns of what `--config` and overrides say without effect."""
    import structlog

    from ops.config.loading import loaded

    if notes := loaded(options.config, options.overrides).notes:
        keys, look = " ".join(note.key for note in notes), f"millrace config {options.config}"
        structlog.get_logger().warning("keys_without_effect", keys=keys, see=look)


def planned_run(options: argparse.Namespace) -> "tuple[RunFolder, Config]":
    """The same, and nothing is written."""
    from ops.config.loading import load_config
    from ops.run.folder import RunFolder

    if options.config is None:
        folder = RunFolder((options.run_dir or RUN_DIR).resolve())
        return folder, folder.load(options.overrides)

    def folder_of(config: "Config") -> RunFolder:
        return RunFolder((options.run_dir or Path(config.save_path)).resolve())

    config = load_config(options.config, options.overrides, lambda composed: folder_of(composed).prompt_texts())
    folder = folder_of(config)
    return folder, replace(config, save_path=str(folder.path))


def worker_name(options: argparse.Namespace) -> str:
    """The name that was given, or one of role, host and process."""
    host = re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname())[:80]
    return options.name or f"{options.command}-{host}-{os.getpid()}"
