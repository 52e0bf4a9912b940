"""The processes of one machine, as the supervisor takes them: pure composition."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ops.launch.devices import VISIBLE
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
    """In the order in which they are started. `file` has this node's paths, `node` this machine's devices."""
    if node.is_server:
        assert given.server_binary is not None
        argv = (str(given.server_binary), "-c", "nats.conf")
        yield RoleSpec(role=Role.SERVER, name=f"{node.name}-server-1", argv=argv, folder=Path(file.server))
    where = ("--run-dir", file.folder, "--config", file.recipe, *file.bus)
    for share in node.workers:
        if share.role is Role.TRAINER and len(file.trainer_nodes) > 1:
            yield _job_spec(file, node, share, where, given.environment)
        else:
            yield from share_specs(share, prefix=f"{node.name}-", arguments=where, environment=given.environment)


def _job_spec(file: NodeFile, node: Node, share: Share, arguments: Sequence[str], environment: Mapping[str, str]) -> RoleSpec:
    """One node's part of a job that several have. All ranks are given the name of rank 0, which alone uses it."""
    (name,) = worker_names(share, prefix=f"{file.trainer_nodes[0].name}-")
    command = millrace_command(role_arguments(share, arguments, name))
    argv = (sys.executable, "-P", "-m", "ops.launch.job", str(file.path), node.name, "--", *command)
    seen = _seen(",".join(share.gpus)) if share.gpus else {}
    return RoleSpec(role=share.role, name=f"{node.name}-job", argv=argv, env={**environment, **seen})


def share_specs(
    share: Share, *, prefix: str, arguments: Sequence[str], environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[RoleSpec]:
    """`prefix`: of every name; `arguments`: that say which run it is."""
    names = worker_names(share, prefix=prefix)
    if share.role is Role.TRAINER and len(share.gpus) > 1:
        command = millrace_command(role_arguments(share, arguments, names[0]))
        argv = (sys.executable, "-P", "-m", "ops.launch.ranks", str(len(share.gpus)), "--", *command)
        yield RoleSpec(role=share.role, name=names[0], argv=argv, env={**environment, **_seen(",".join(share.gpus))})
        return
    for index, name in enumerate(names):
        seen = _seen(share.gpus[index]) if share.gpus else {}
        argv = millrace_command(role_arguments(share, arguments, name))
        yield RoleSpec(role=share.role, name=name, argv=argv, env={**environment, **seen})


def worker_names(share: Share, *, prefix: str) -> tuple[str, ...]:
    """They stay the same when a process is started anew, so that its successor is known."""
    count = 1 if share.role is Role.TRAINER else share.count
    return tuple(f"{prefix}{share.role.value}-{number}" for number in range(1, count + 1))


def role_arguments(share: Share, arguments: Sequence[str], name: str) -> tuple[str, ...]:
    """What follows `millrace` for one worker."""
    command = _COMMANDS.get(share.role, share.role.value)
    return (command, "--name", name, *arguments, *share.config)


def _seen(gpus: str) -> dict[str, str]:
    return {VISIBLE: gpus}
