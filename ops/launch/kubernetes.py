"""Kubernetes manifests from the node file: a Deployment a role and node, a StatefulSet a server. Secrets are only named.

Workers run as nobody's user, on a root that they cannot write to, without capabilities; nobody may call them. Browsers reach
servers, names and public addresses, and keep Chromium's sandbox by a seccomp profile that the nodes have.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ops.launch.node_file import Node, NodeFile, Share
from ops.launch.pod_settings import sessions_of
from ops.launch.processes import role_arguments
from ops.launch.templates import filled
from schemas.errors import ConfigurationError
from schemas.messages import Role

SECCOMP_PROFILE = "millrace-chromium.json"
"""On the nodes, under the kubelet's folder `seccomp`."""
_GIVEN = "/given/recipe"
_STORING = {Role.TRAINER: "500Gi", Role.ARCHIVER: "500Gi"}
"""Roles whose folder outlives their pod."""
_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?\Z")
_LONGEST_LABEL = 63
_QUEUES = {Role.BROWSER: "browsers", Role.POLICY: "policies", Role.JUDGE: "judges"}
_TAKES = {Role.POLICY: 64, Role.JUDGE: 8}
"""What one pod works on at a time."""
_MEMORY = {"medium": "Memory"}
_Volume = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Images:
    workers: str
    servers: str


@dataclass(frozen=True)
class Names:
    """What the manifests expect to exist, or make."""

    run: str

    def keys(self, role: str) -> str:
        return label(f"millrace-{self.run}-{role}")

    @property
    def monitor(self) -> str:
        return label(f"millrace-{self.run}-monitor-door")

    @property
    def authority(self) -> str:
        return label(f"millrace-{self.run}-ca")

    @property
    def environment(self) -> str:
        return label(f"millrace-{self.run}-environment")

    @property
    def recipe(self) -> str:
        return label(f"millrace-{self.run}-recipe")

    def server(self, node: Node) -> str:
        return label(f"millrace-{self.run}-server-{node.name}")


def label(text: str) -> str:
    """As Kubernetes takes names: lower case, digits and hyphens, 63 at most; with its hash, where this changes it."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if plain == text and len(text) <= _LONGEST_LABEL:
        return text
    ending = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{plain[: _LONGEST_LABEL - len(ending) - 1].rstrip('-')}-{ending}".lstrip("-")


def manifests(file: NodeFile, images: Images) -> str:
    """All of a run in one file.

    Raises:
        ConfigurationError: a server's host cannot name a Service, or several nodes have the role trainer or one that scales.
    """
    if len(file.trainer_nodes) > 1:
        raise ConfigurationError(
            f"{file.path}: several nodes have the role trainer, and a pod's address is not known beforehand: give all of its "
            "GPUs to one node, or start those nodes by millrace launch"
        )
    for role in file.pods.scale:
        having = [node.name for node in file.nodes.values() if node.share(role) is not None]
        if len(having) > 1:
            raise ConfigurationError(
                f"{file.path}: kubernetes.scale.{role.value} is for one node, and {' and '.join(having)} have the role: each "
                "would have as many pods as all that waits asks for. Give it to one of them, which stands for any machines"
            )
    return "---\n".join(_documents(file, images))


def _documents(file: NodeFile, images: Images) -> Iterator[str]:
    names, run = Names(file.run), json.dumps(file.run)
    recipe = {given.name: given.read_text(encoding="utf-8") for given in file.copied}
    yield filled("kubernetes_recipe.yaml", name=names.recipe, run=run, data=json.dumps(recipe))
    yield filled("kubernetes_network.yaml", name=label(f"millrace-{file.run}"), run=run)
    if file.pods.monitor:
        yield _monitor(file, images, names)
    for node in file.nodes.values():
        of_node = file.of(node)
        if node.is_server:
            yield _server(of_node, node, images, names)
        for share in node.workers:
            name = label(f"millrace-{file.run}-{node.name}-{share.role.value}")
            if share.role in _STORING:
                yield filled("kubernetes_volume.yaml", name=name, run=run, size=_STORING[share.role])
            yield _worker(of_node, share, images, names, name)
            if share.role in file.pods.scale:
                yield _scaled(file, share, name)


def _server(file: NodeFile, node: Node, images: Images, names: Names) -> str:
    if not _LABEL.match(node.host):
        raise ConfigurationError(
            f"{file.path}: nodes.{node.name}.address is {node.host!r}: in Kubernetes it names the server's Service, so write "
            "lower-case letters, digits and hyphens, and the same name for millrace cluster --server and in url"
        )
    return filled(
        "kubernetes_server.yaml",
        name=names.server(node),
        host=node.host,
        run=json.dumps(file.run),
        server=file.server,
        server_image=json.dumps(images.servers),
        server_secret=names.server(node),
        script=json.dumps(
            f"umask 077; cp /given/server/* {file.server}/ && cd {file.server} && exec nats-server -c nats.conf"
        ),
    )


def _worker(file: NodeFile, share: Share, images: Images, names: Names, name: str) -> str:
    role, seed = share.role, f"{share.role.value}.seed"
    num_gpus = max((entry.count(",") + 1 for entry in share.gpus), default=0)
    replicas = share.count
    if role is Role.TRAINER:
        num_gpus, replicas = sum(entry.count(",") + 1 for entry in share.gpus), 1
    resources = file.pods.resources_of(role, sessions_of(file.recipe, share.config) if role is Role.BROWSER else 0)
    if num_gpus:
        resources.setdefault("limits", {})["nvidia.com/gpu"] = str(num_gpus)
    volumes: dict[str, _Volume] = {
        "/given/keys": _secret(names.keys(role.value), seed),
        "/given/ca": _secret(names.authority, "ca.pem"),
        _GIVEN: {"configMap": {"name": names.recipe}},
        file.keys: {"emptyDir": _MEMORY},
        file.folder: {"persistentVolumeClaim": {"claimName": name}} if role in _STORING else {"emptyDir": {}},
        "/home/millrace": {"emptyDir": {}},
        "/tmp": {"emptyDir": {}},  # noqa: S108 - in a pod of its own
        "/dev/shm": {"emptyDir": _MEMORY},  # noqa: S108
        **{
            path: {"persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
            for path, claim in file.pods.volumes.items()
        },
    }
    is_scaled = role in file.pods.scale
    return filled(
        "kubernetes_worker.yaml",
        name=name,
        run=json.dumps(file.run),
        role=role.value,
        # A number here would take back what the autoscaler made of it.
        replicas="  # Their number is the autoscaler's." if is_scaled else f"  replicas: {replicas}",
        strategy="Recreate" if role in _STORING else "RollingUpdate",
        seccomp=json.dumps(
            {"type": "Localhost", "localhostProfile": SECCOMP_PROFILE} if role is Role.BROWSER else {"type": "RuntimeDefault"}
        ),
        image=json.dumps(images.workers),
        script=json.dumps(_script(file, share, num_gpus)),
        environment_secret=names.environment,
        resources=json.dumps(resources),
        **_mounted(volumes),
    )


def _monitor(file: NodeFile, images: Images, names: Names) -> str:
    node = next(iter(file.nodes.values()))
    of_node = replace(file.of(node), ca_file="/given/ca/ca.pem")
    given = f"--run-dir {of_node.folder} --config {_config(file)} --web --port 8400 --host 0.0.0.0 --name {file.pods.monitor}"
    doors = " ".join(f"--{option} {of_node.keys}/{name}" for option, name in _DOOR.items())
    bus = " ".join(map(shlex.quote, of_node.bus))
    copied = f"cp /given/keys/*.seed /given/door/* {of_node.keys}/"
    volumes: dict[str, _Volume] = {
        "/given/keys": _secret(names.keys("monitor"), "monitor.seed"),
        "/given/ca": _secret(names.authority, "ca.pem"),
        "/given/door": {"secret": {"secretName": names.monitor}},
        _GIVEN: {"configMap": {"name": names.recipe}},
        of_node.keys: {"emptyDir": _MEMORY},
        of_node.folder: {"emptyDir": {}},
        "/home/millrace": {"emptyDir": {}},
        "/tmp": {"emptyDir": {}},  # noqa: S108 - in a pod of its own
    }
    return filled(
        "kubernetes_monitor.yaml",
        name=label(f"millrace-{file.run}-monitor"),
        run=json.dumps(file.run),
        image=json.dumps(images.workers),
        script=json.dumps(f"umask 077; {copied} && exec millrace monitor {given} {doors} {bus}"),
        **_mounted(volumes),
    )


_DOOR = {"tls-cert": "tls.crt", "tls-key": "tls.key", "token-file": "token"}
"""Options of the monitor, and the files of its Secret."""


def _scaled(file: NodeFile, share: Share, name: str) -> str:
    scale = file.pods.scale[share.role]
    takes = sessions_of(file.recipe, share.config) if share.role is Role.BROWSER else _TAKES[share.role]
    of = f'{{run="{file.run}",queue=~"{_QUEUES[share.role]}_.+"}}'
    return filled(
        "kubernetes_scale.yaml",
        name=name,
        run=json.dumps(file.run),
        role=share.role.value,
        least=scale.least,
        most=scale.most,
        prometheus=json.dumps(scale.prometheus),
        query=json.dumps(f"sum(millrace_queue_pending{of}) + sum(millrace_queue_in_flight{of})"),
        threshold=takes,
    )


def _secret(name: str, file: str) -> _Volume:
    return {"secret": {"secretName": name, "items": [{"key": file, "path": file}]}}


def _mounted(volumes: dict[str, _Volume]) -> dict[str, str]:
    """What templates name `mounts` and `volumes`, by mount path."""
    named = {path: label(path) for path in volumes}
    mounts: Sequence[object] = [
        {"name": named[path], "mountPath": path, **({"readOnly": True} if _is_given(volume) else {})}
        for path, volume in volumes.items()
    ]
    made: Sequence[object] = [{"name": named[path], **volume} for path, volume in volumes.items()]
    return {"mounts": _lines(mounts, 12), "volumes": _lines(made, 8)}


def _is_given(volume: _Volume) -> bool:
    return "secret" in volume or "configMap" in volume or "readOnly" in volume.get("persistentVolumeClaim", {})


def _lines(items: Sequence[object], indent: int) -> str:
    return "".join(f"\n{' ' * indent}- {json.dumps(item)}" for item in items)


def _script(file: NodeFile, share: Share, num_gpus: int) -> str:
    """Copies the key to where only its owner may read it, as every worker asks, and becomes the worker.

    A trainer is one job under one name; the others are named by their pods.
    """
    bus = replace(file, ca_file="/given/ca/ca.pem").bus
    arguments = role_arguments(share, ("--run-dir", file.folder, "--config", _config(file), *bus), "POD")
    words = " ".join('"$POD"' if word == "POD" else shlex.quote(word) for word in arguments)
    command = "millrace"
    if share.role is Role.TRAINER and num_gpus > 1:
        command = f"python -m ops.launch.ranks {num_gpus} -- millrace"
    return f"umask 077; cp /given/keys/*.seed {file.keys}/ && exec {command} {words}"


def _config(file: NodeFile) -> str:
    return f"{_GIVEN}/{file.config}" if file.recipe_file else file.config
