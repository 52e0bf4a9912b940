"""Kubernetes manifests from the node file: a Deployment a role and node, a StatefulSet a server. Secrets are only named."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ops.launch.node_file import Node, NodeFile, Share
from ops.launch.processes import role_arguments
from ops.launch.templates import filled
from schemas.errors import ConfigurationError
from schemas.messages import Role

_GIVEN = "/given/recipe"
_STORING = {Role.TRAINER: "500Gi", Role.ARCHIVER: "500Gi"}
"""Roles whose folder outlives their pod."""
_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?\Z")


@dataclass(frozen=True, kw_only=True)
class Images:
    workers: str
    servers: str


@dataclass(frozen=True)
class Names:
    """What the manifests expect to exist, or make."""

    run: str

    def keys(self, role: Role) -> str:
        return label(f"millrace-{self.run}-{role.value}")

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
    """As Kubernetes takes names: lower case, digits and hyphens, 63 at most."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:63].rstrip("-")


def manifests(file: NodeFile, images: Images) -> str:
    """All of a run in one file.

    Raises:
        ConfigurationError: a server's host cannot name a Service, or several nodes have the role trainer.
    """
    if len(file.trainer_nodes) > 1:
        raise ConfigurationError(
            f"{file.path}: several nodes have the role trainer, and a pod's address is not known beforehand: give all of its "
            "GPUs to one node, or start those nodes by millrace launch"
        )
    return "---\n".join(_documents(file, images))


def _documents(file: NodeFile, images: Images) -> Iterator[str]:
    names = Names(file.run)
    recipe = {file.config: file.recipe_file.read_text()} if file.recipe_file else {}
    yield filled("kubernetes_recipe.yaml", name=names.recipe, run=json.dumps(file.run), data=json.dumps(recipe))
    for node in file.nodes.values():
        of_node = file.of(node)
        if node.is_server:
            yield _server(of_node, node, images, names)
        for share in node.workers:
            name = label(f"millrace-{file.run}-{node.name}-{share.role.value}")
            if share.role in _STORING:
                yield filled("kubernetes_volume.yaml", name=name, run=json.dumps(file.run), size=_STORING[share.role])
            yield _worker(of_node, share, images, names, name)


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
    return filled(
        "kubernetes_worker.yaml",
        name=name,
        run=json.dumps(file.run),
        role=role.value,
        replicas=replicas,
        strategy="Recreate" if role in _STORING else "RollingUpdate",
        image=json.dumps(images.workers),
        script=json.dumps(_script(file, share, num_gpus)),
        environment_secret=names.environment,
        limits=json.dumps({"nvidia.com/gpu": num_gpus} if num_gpus else {}),
        keys=file.keys,
        folder=file.folder,
        keys_secret=names.keys(role),
        seed=seed,
        ca_secret=names.authority,
        recipe_map=names.recipe,
        storage=f"persistentVolumeClaim: {{claimName: {name}}}" if role in _STORING else "emptyDir: {}",
    )


def _script(file: NodeFile, share: Share, num_gpus: int) -> str:
    """Copies the key to where only its owner may read it, as every worker asks, and becomes the worker.

    A trainer is one job under one name; the others are named by their pods.
    """
    config = f"{_GIVEN}/{file.config}" if file.recipe_file else file.config
    bus = replace(file, ca_file="/given/ca/ca.pem").bus
    arguments = role_arguments(share, ("--run-dir", file.folder, "--config", config, *bus), "POD")
    words = " ".join('"$POD"' if word == "POD" else shlex.quote(word) for word in arguments)
    command = "millrace"
    if share.role is Role.TRAINER and num_gpus > 1:
        command = f"python -m ops.launch.ranks {num_gpus} -- millrace"
    return f"umask 077; cp /given/keys/*.seed {file.keys}/ && exec {command} {words}"
