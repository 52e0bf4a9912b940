"""One role as a process: its command, its environment, and how it ended, in words."""

import shutil
import signal
import sys
from collections.abc import Sequence
from os import environ
from pathlib import Path

from bus.output_file import last_lines

_SUPERVISED = "MILLRACE_SUPERVISED"
"""In the environment of what a supervisor started: its output is kept in a file beside its log."""
_PACKAGES = Path(__file__).resolve().parents[2]


def millrace_command(arguments: Sequence[str]) -> tuple[str, ...]:
    """The argument vector of `millrace <arguments>` for this interpreter, whatever the working directory holds."""
    return (sys.executable, "-P", "-m", "ops.cli", *arguments)


def typed(argv: Sequence[str]) -> tuple[str, ...]:
    """An argument vector that holds `millrace_command`'s, as a person types that."""
    command = millrace_command(())
    for begin in range(len(argv)):
        if tuple(argv[begin : begin + len(command)]) == command:
            return ("millrace", *argv[begin + len(command) :])
    return tuple(argv)


def said_command() -> str:
    """What a person types to start `millrace` here."""
    if shutil.which("millrace"):
        return "millrace"
    beside = Path(sys.executable).with_name("millrace")
    return str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside)


def millrace_environment() -> dict[str, str]:
    """This process's environment, such that a child finds the same packages."""
    paths = [str(_PACKAGES), *environ.get("PYTHONPATH", "").split(":")]
    return {**environ, "PYTHONPATH": ":".join(dict.fromkeys(filter(None, paths)))}


def supervised_environment() -> dict[str, str]:
    return {**millrace_environment(), _SUPERVISED: "1"}


def is_supervised() -> bool:
    return _SUPERVISED in environ


def exit_code(returncode: int) -> int:
    """What a process ended with, in one way for guards and their roles: 128 + n after signal n, where Python says -n."""
    return returncode if returncode >= 0 else 128 - returncode


def describe_end(code: int, output: Path) -> str:
    """The last line that a role wrote; without one, what its exit code says."""
    if code > 128:
        with_name = next((s.name for s in signal.Signals if s == code - 128), str(code - 128))
        return f"killed by {with_name}"
    last = (last_lines(output) or [""])[-1]
    return last.removeprefix("millrace: ") or f"ended with exit code {code}"
