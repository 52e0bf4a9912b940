"""A node started, drained and stopped over ssh. Files go through its standard input, private to their owner at once.

A node is given the keys of its own roles and no others. ssh asks nothing: keys and known hosts have to be set up.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ops.launch.node_file import Node, NodeFile
from ops.launch.placing import files_of, present
from ops.launch.templates import common, filled
from schemas.errors import ConfigurationError

_LIMIT_S = 120.0
_STOP_TRIES = 150


@dataclass(frozen=True, kw_only=True)
class Step:
    """One call of ssh."""

    address: str
    command: str
    source: Path | None = None
    """What its standard input is."""
    shown: str
    """In a line, for people."""


class SshFailed(ConfigurationError):
    """A step did not succeed; those behind it were not taken."""


def starting(file: NodeFile, node: Node, cluster: Path, *, options: str = "") -> Iterator[Step]:
    """Everything that a node needs, then its start. Raises `ConfigurationError` for a file that is not in `cluster`."""
    for source, target in present(files_of(file, node, cluster)):
        folder = target.rpartition("/")[0]
        command = filled("ssh_put.sh", folder=folder, path=target)
        yield Step(address=node.address, command=command, source=source, shown=f"{source} -> {target}")
    command = filled("ssh_start.sh", **common(file, node, options))
    yield Step(address=node.address, command=command, shown=f"start {node.name}")


def stopping(file: NodeFile, node: Node) -> Step:
    """Returns when the node has left; what its workers held is handed back."""
    values = {"signal": "TERM", "tries": _STOP_TRIES, "code": 1, "unfinished": "has not left within 30 s"}
    return Step(
        address=node.address, command=filled("ssh_signal.sh", **common(file, node), **values), shown=f"stop {node.name}"
    )


def draining(file: NodeFile, node: Node) -> Step:
    """Tells the node to leave when its workers have finished what they hold, and does not wait for that."""
    values = {"signal": "USR1", "tries": 5, "code": 0, "unfinished": "is draining"}
    return Step(
        address=node.address, command=filled("ssh_signal.sh", **common(file, node), **values), shown=f"drain {node.name}"
    )


def take(step: Step) -> str:
    """Runs ssh; returns what the node said. Raises `SshFailed`."""
    argv = ["ssh", "-o", "BatchMode=yes", "--", step.address, step.command]
    given = step.source.read_bytes() if step.source else b""
    try:
        done = subprocess.run(argv, input=given, capture_output=True, check=False, timeout=_LIMIT_S)
    except FileNotFoundError:
        raise SshFailed("there is no ssh here: install an OpenSSH client") from None
    except subprocess.TimeoutExpired:
        raise SshFailed(f"{step.address}, {step.shown}: no end within {_LIMIT_S:g} s") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace")
        words = (said or f"exit code {done.returncode}").splitlines()[-1]
        raise SshFailed(f"{step.address}, {step.shown}: {words}")
    return done.stdout.decode(errors="replace").strip()
