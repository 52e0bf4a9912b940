"""The processes of one node, as the supervisor takes them: pure composition from the node file."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ops.launch.node_file import Node, NodeFile, Share
from ops.processes.role_process import millrace_command
from ops.processes.supervisor import RoleSpec
from schemas.messages import Role

_COMMANDS = {Role.ARCHIVER: "archive"}


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a node has, beside its file."""

    server_binary: Path | None
    """Needed where the node has a server."""
    environment: Mapping[str, str]


def processes(file: NodeFile, node: Node, given: Given) -> Iterator[RoleSpec]:
    """In the order in which they are started. `file` has this node's paths."""
    if node.is_server:
        assert given.server_binary is not None
        argv = (str(given.server_binary), "-c", "nats.conf")
        yield RoleSpec(role=Role.SERVER, name=f"{node.name}-server-1", argv=argv, folder=Path(file.server))
    for share in node.workers:
        yield from _of(file, node, share, given.environment)


def worker_names(node: Node, share: Share) -> tuple[str, ...]:
    """They stay the same when a process is started anew, so that its successor is known."""
    count = 1 if share.role is Role.TRAINER else share.count
    return tuple(f"{node.name}-{share.role.value}-{number}" for number in range(1, count + 1))


def _of(file: NodeFile, node: Node, share: Share, environment: Mapping[str, str]) -> Iterator[RoleSpec]:
    names = worker_names(node, share)
    if share.role is Role.TRAINER and len(share.gpus) > 1:
        command = millrace_command(role_arguments(file, share, names[0]))
        argv = (sys.executable, "-P", "-m", "ops.launch.ranks", str(len(share.gpus)), "--", *command)
        yield RoleSpec(role=share.role, name=names[0], argv=argv, env={**environment, **_seen(",".join(share.gpus))})
        return
    for index, name in enumerate(names):
        seen = _seen(share.gpus[index]) if share.gpus else {}
        argv = millrace_command(role_arguments(file, share, name))
        yield RoleSpec(role=share.role, name=name, argv=argv, env={**environment, **seen})


def role_arguments(file: NodeFile, share: Share, name: str) -> tuple[str, ...]:
    """What follows `millrace` for one worker."""
    command = _COMMANDS.get(share.role, share.role.value)
    return (command, "--run-dir", file.folder, "--config", file.recipe, "--name", name, *file.bus, *share.config)


def _seen(gpus: str) -> dict[str, str]:
    return {"CUDA_VISIBLE_DEVICES": gpus}
