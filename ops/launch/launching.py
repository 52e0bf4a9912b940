"""`millrace launch`: writes what systemd, Slurm or Kubernetes start nodes with, or starts, drains and stops them over ssh."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ops.console.output_folder import make_output
from ops.launch.kubernetes import SECCOMP_PROFILE, Images, Names, manifests
from ops.launch.node_file import Node, NodeFile, read_node_file
from ops.launch.placing import files_of, place
from ops.launch.seccomp import chromium_seccomp
from ops.launch.ssh import Step, draining, starting, stopping, take
from ops.launch.templates import slurm_script, systemd_unit
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
    places: bool = False
    """Files that nodes need are put there by this machine, which shares a disk with them."""
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
    if plan.places:
        for node in nodes:
            place(files_of(file.of(node), node, plan.cluster))
    make_output(plan.out)
    for path, text in written.items():
        path.write_text(text)
        print(f"wrote {path}")
    print(_next_on_kubernetes(plan, file) if plan.means == "kubernetes" else _next(plan, file, nodes))
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


def _next(plan: Plan, file: NodeFile, nodes: Sequence[Node]) -> str:
    lines = [] if plan.places else list(_to_copy(plan, file, nodes))
    if plan.means == "slurm":
        lines.append("submit")
        lines += [f"  sbatch {plan.out / node.name}.sbatch" for node in nodes]
    else:
        lines.append("copy each service to its node, into /etc/systemd/system, then there")
        lines += [f"  systemctl enable --now millrace-{node.name}" for node in nodes]
    lines.append("once, when the servers are up")
    lines.append(f"  millrace streams --file {plan.file} --cluster {plan.cluster}")
    return "\n".join(lines)


def _to_copy(plan: Plan, file: NodeFile, nodes: Sequence[Node]) -> Iterator[str]:
    needed: dict[str, list[str]] = {}
    for node in nodes:
        for source, target in files_of(file.of(node), node, plan.cluster):
            needed.setdefault(f"  {source} -> {target}", []).append(node.name)
    yield "copy to the nodes, readable by their owner alone (--place does it on a disk that they share with this machine)"
    for pair, names in needed.items():
        yield pair if len(names) == len(nodes) else f"{pair}  ({', '.join(names)})"


def _next_on_kubernetes(plan: Plan, file: NodeFile) -> str:
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
