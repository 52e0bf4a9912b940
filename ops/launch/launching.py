"""`millrace launch`: writes what systemd, Slurm or Kubernetes start nodes with, or starts, drains and stops them over ssh."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ops.console.output_folder import make_output
from ops.launch.kubernetes import SECCOMP_PROFILE, Images, Names, manifests
from ops.launch.node_file import Node, NodeFile, read_node_file
from ops.launch.seccomp import chromium_seccomp
from ops.launch.ssh import Step, draining, starting, stopping, take
from ops.launch.templates import NODES_FILE, slurm_script, systemd_unit
from schemas.errors import ConfigurationError

Means = Literal["ssh", "systemd", "slurm", "kubernetes"]
Act = Literal["start", "drain", "stop"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    file: Path
    means: Means
    names: Sequence[str]
    """Nodes; empty: all."""
    out: Path
    cluster: Path
    """What `millrace cluster` wrote."""
    images: Images
    act: Act = "start"
    dry_run: bool = False
    options: str = ""
    """For `node.sh`."""


def launch(plan: Plan) -> int:
    """Returns 0. Raises `ConfigurationError`."""
    file = read_node_file(plan.file)
    nodes = [file.node(name) for name in plan.names] or list(file.nodes.values())
    if plan.means == "ssh":
        for node in nodes:
            _over_ssh(plan, file.of(node), node)
        return 0
    written = _written(plan, file, nodes)
    make_output(plan.out)
    for path, text in written.items():
        path.write_text(text)
        print(f"wrote {path}")
    print(_next(plan, file))
    return 0


def _over_ssh(plan: Plan, file: NodeFile, node: Node) -> None:
    steps: Sequence[Step]
    match plan.act:
        case "start":
            steps = tuple(starting(file, node, plan.cluster, options=plan.options))
        case "drain":
            steps = (draining(file, node),)
        case "stop":
            steps = (stopping(file, node),)
    for step in steps:
        if plan.dry_run:
            given = f" <{step.source}" if step.source else ""
            print(f"ssh {step.address} {step.command.strip()!r}{given}")
        else:
            said = take(step)
            print(said or step.shown)


def _written(plan: Plan, file: NodeFile, nodes: Sequence[Node]) -> dict[Path, str]:
    match plan.means:
        case "systemd":
            return {
                plan.out / f"millrace-{node.name}.service": systemd_unit(file.of(node), node, plan.options) for node in nodes
            }
        case "slurm":
            return {plan.out / f"{node.name}.sbatch": slurm_script(file.of(node), node, plan.options) for node in nodes}
        case _:
            if file.address_file is not None:
                raise ConfigurationError(f"{file.path}: Kubernetes knows its servers by name: write in url tls://NAME:4222")
            chosen = replace(file, nodes={node.name: node for node in nodes})
            return {
                plan.out / f"millrace-{file.run}.yaml": manifests(chosen, plan.images),
                plan.out / SECCOMP_PROFILE: chromium_seccomp(),
            }


def _next(plan: Plan, file: NodeFile) -> str:
    if plan.means != "kubernetes":
        given = "".join(f", {each.name}" for each in file.copied)
        return (
            f"copy each to its node, {plan.file.name} (as {NODES_FILE}){given} into {file.folder}, and the keys of that "
            f"node's roles into {file.keys}"
        )
    names, keys = Names(file.run), plan.cluster / "keys" / file.run
    roles = sorted({share.role for node in file.nodes.values() for share in node.workers}, key=lambda role: role.value)
    lines = [f"copy {SECCOMP_PROFILE} to every node with browsers, into the folder seccomp of its kubelet"]
    lines.append("create the secrets; none of them is in the manifests:")
    lines += [
        f"  kubectl create secret generic {names.keys(role.value)} --from-file={keys}/{role.value}.seed" for role in roles
    ]
    if file.pods.monitor:
        lines.append(f"  kubectl create secret generic {names.keys('monitor')} --from-file={keys}/monitor.seed")
        lines.append(
            f"  kubectl create secret generic {names.monitor} --from-file=tls.crt --from-file=tls.key --from-file=token"
            f"  # a certificate of {file.pods.monitor}, and 20 characters or more"
        )
    lines.append(f"  kubectl create secret generic {names.authority} --from-file={plan.cluster}/ca.pem")
    if file.environment:
        lines.append(f"  kubectl create secret generic {names.environment} --from-env-file=ENVIRONMENT")
    for node in file.nodes.values():
        if node.is_server:
            folder = plan.cluster / "servers" / node.host
            lines.append(f"  kubectl create secret generic {names.server(node)} --from-file={folder}")
    return "\n".join(lines)
