"""The node file: which roles run on which node, and what all nodes have in common. Only whoever starts nodes reads it.

    run: mine
    config: recipe.yaml                    # a recipe, or a file beside this one
    url: tls://cpu-1:4222                  # of the servers; file:/shared/mine/server.json: of one on any machine
    ca_file: /etc/millrace/ca.pem
    keys: /etc/millrace/keys               # holds the keys of that node's roles
    folder: /var/lib/millrace/mine         # logs, checkpoints
    environment: /etc/millrace/environment # KEY=VALUE, its owner's alone; optional
    server: /var/lib/millrace/server       # on nodes with a server: its folder from `millrace cluster`, and its data
    source: /opt/millrace                  # this project's files; venv: its virtual environment, if not .venv there
    nodes:
      cpu-1: {address: 10.0.0.1, roles: {server: 1, feeder: 1, browser: {count: 2, config: [env_config.server_size=32]}}}
      gpu-1: {address: 10.0.0.2, roles: {judge: 1, policy: {gpus: [0, 1]}, trainer: {gpus: [2, 3]}}}

Several nodes may have the role trainer: it is one job, whose ranks meet in `trainer_network`, as 10.1.0.0/16.

`{node}` in a path stands for the node's name.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network
from pathlib import Path

from bus.address_file import address_file
from ops.config.loading import load_config, merged_files, prompt_file
from ops.config.overrides import as_overrides
from ops.config.reading import read_yaml
from ops.config.recipes import RECIPES
from ops.launch.pod_settings import PodSettings, read_pod_settings
from ops.launch.slurm_settings import read_slurm_settings
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.ids import RunName, subject_token
from schemas.messages import Role
from schemas.server_url import server_urls

ROLES = (Role.SERVER, Role.FEEDER, Role.BROWSER, Role.POLICY, Role.JUDGE, Role.ARCHIVER, Role.TRAINER)
"""In the order in which a node starts them."""
_SINGLE = (Role.SERVER, Role.TRAINER)
_WITH_GPUS = (Role.POLICY, Role.TRAINER)
_PATHS = ("ca_file", "keys", "folder", "environment", "server", "source", "venv")
_TEXTS = ("run", "config", "url", *_PATHS, "trainer_network")
_KEYS = (*_TEXTS, "kubernetes", "slurm", "nodes")
_NODE = "{node}"
_PLAIN = "letters, digits and . _ -"
_PATH = re.compile(r"/([A-Za-z0-9._/-]|\{node\})*\Z")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\Z")
_ADDRESS = re.compile(r"([a-z_][a-z0-9_-]*@)?[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?\Z")
"""What goes into scripts and units is held to characters that mean nothing there."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one node runs of one role."""

    role: Role
    count: int = 1
    """Processes; of a trainer, ranks of the one job."""
    gpus: tuple[str, ...] = ()
    """What each process sees in CUDA_VISIBLE_DEVICES, as `0` or `0,1`; of a trainer, each rank's. Empty: not set."""
    config: tuple[str, ...] = ()
    """KEY=VALUE, as on the command line."""


def named_twice(gpus: Iterable[str]) -> str | None:
    """The first GPU that is there more than once.

    Args:
        gpus: what each process sees, as in a share.
    """
    named = Counter(gpu for entry in gpus for gpu in entry.split(","))
    return next((gpu for gpu, times in named.items() if times > 1), None)


@dataclass(frozen=True, kw_only=True)
class Node:
    """One machine."""

    name: str
    address: str
    """Where ssh reaches it: a host, or user@host."""
    shares: tuple[Share, ...]
    slurm: Mapping[str, str] = field(default_factory=dict)
    """Options of sbatch, the file's among them."""

    def share(self, role: Role) -> Share | None:
        return next((share for share in self.shares if share.role is role), None)

    @property
    def host(self) -> str:
        return self.address.rpartition("@")[2]

    @property
    def is_server(self) -> bool:
        return self.share(Role.SERVER) is not None

    @property
    def workers(self) -> tuple[Share, ...]:
        return tuple(share for share in self.shares if share.role is not Role.SERVER)

    @property
    def gpus(self) -> tuple[str, ...]:
        """The numbers of all that its processes see, lowest first."""
        return tuple(sorted({gpu for share in self.shares for entry in share.gpus for gpu in entry.split(",")}, key=int))


@dataclass(frozen=True, kw_only=True)
class NodeFile:
    """Paths are those on the nodes; `of` makes them one node's."""

    path: Path
    run: RunName
    config: str
    url: str
    ca_file: str
    keys: str
    folder: str
    environment: str = ""
    server: str = ""
    source: str = "/opt/millrace"
    """This project's files."""
    venv: str = ""
    """Virtual environment; empty: .venv in `source`."""
    trainer_network: str = ""
    """Where the ranks of a trainer meet that several nodes have, as 10.1.0.0/16."""
    pods: PodSettings = PodSettings()
    """The file's key `kubernetes`."""
    nodes: Mapping[str, Node] = field(default_factory=dict)

    @property
    def address_file(self) -> Path | None:
        """Where the server's node says on which machine it is, if that is not known before."""
        return address_file(self.url)

    @property
    def trainer_nodes(self) -> tuple[Node, ...]:
        """The first has rank 0."""
        return tuple(node for node in self.nodes.values() if node.share(Role.TRAINER) is not None)

    def node(self, name: str) -> Node:
        """Raises `ConfigurationError` for a name that the file does not have."""
        if name not in self.nodes:
            raise ConfigurationError(f"{self.path} has no node {name!r}: write one of {', '.join(self.nodes)}")
        return self.nodes[name]

    def of(self, node: Node) -> "NodeFile":
        """The same with that node's paths."""
        return replace(self, **{name: getattr(self, name).replace(_NODE, node.name) for name in _PATHS})

    @property
    def recipe_file(self) -> Path | None:
        """Where it is here, unless it is one of this project's own."""
        beside = self.path.parent / self.config
        return beside if beside.is_file() else None

    @property
    def recipe(self) -> str:
        """As `--config` takes it: a file beside this one, or the name of a recipe."""
        return str(self.recipe_file.resolve()) if self.recipe_file else self.config

    @property
    def copied(self) -> tuple[Path, ...]:
        """What nodes are given of that which stands beside this file: the recipe, what it and the choices of workers begin
        with, and the prompt file.

        Raises:
            ConfigurationError: the recipe cannot be read, or something of it does not stand there.
        """
        if self.recipe_file is None:
            return ()
        recipe = self.recipe_file.resolve()
        prompt = prompt_file(recipe)
        copied = [recipe, *([prompt[1] / prompt[0]] if prompt else ())]
        for overrides in dict.fromkeys(((), *(share.config for node in self.nodes.values() for share in node.shares))):
            copied += [merged.path for merged in merged_files(recipe, overrides) if not merged.path.is_relative_to(RECIPES)]
            own = prompt_file(recipe, overrides)
            if own and own != prompt and not Path(own[0]).is_absolute():
                raise ConfigurationError(
                    f"{self.path}: a worker's config names the prompt {own[0]}, which no node is given: write it into "
                    f"{recipe}, or its whole path, where it is on every node"
                )
        for path in copied:
            if path.parent.resolve() != recipe.parent or not _FILE.match(path.name) or not path.is_file():
                raise ConfigurationError(
                    f"{self.path}: every node is to be given {path}, of which the recipe is made: put the file beside the "
                    f"recipe, and write its name, of {_PLAIN}"
                )
        return tuple(dict.fromkeys(path.resolve() for path in copied))

    @property
    def bus(self) -> tuple[str, ...]:
        """What all roles are given as KEY=VALUE."""
        values = {"run": self.run, "url": self.url, "ca_file": self.ca_file, "keys": self.keys}
        return as_overrides({f"bus_config.{key}": value for key, value in values.items()})


def administered(path: Path, cluster: Path, overrides: Sequence[str]) -> Config:
    """The run of a node file as its administrator joins it, who has the folder of `millrace cluster`.

    Raises `ConfigurationError`.
    """
    file = read_node_file(path)
    mine = replace(file, ca_file=str(cluster.resolve() / "ca.pem"), keys=str(cluster.resolve() / "keys" / file.run))
    return load_config(file.recipe, [*mine.bus, *overrides])


def _is_network(text: str) -> bool:
    try:
        return IPv4Network(text).num_addresses > 1
    except ValueError:
        return False


def read_node_file(path: Path) -> NodeFile:
    """Raises `ConfigurationError` that says where in the file something is wrong, and what to write."""
    return _Reader(path).file(read_yaml(path, "the node file"))


@dataclass(frozen=True)
class _Reader:
    path: Path

    def file(self, content: object) -> NodeFile:
        given = self._mapping(content, "the file", _KEYS)
        texts = {key: self._text(given[key], key) for key in _TEXTS if key in given}
        pods = read_pod_settings(given.get("kubernetes", {}), self._wrong)
        slurm = read_slurm_settings(given.get("slurm", {}), "slurm", self._wrong)
        for key in ("run", "url", "ca_file", "keys", "folder"):
            if not texts.get(key):
                raise self._wrong(f"{key} is missing")
        for key in _PATHS:
            if not _PATH.match(texts.get(key, "/")):
                raise self._wrong(f"{key} is {texts[key]!r}: write an absolute path on the nodes, of {_PLAIN} and /")
        if not _FILE.match(texts.get("config", "default")):
            raise self._wrong(f"config is {texts['config']!r}: write a recipe, or a file beside this one, of {_PLAIN}")
        run = RunName(subject_token(texts.pop("run"), what="run"))
        named = self._mapping(given.get("nodes"), "nodes", None)
        nodes = {name: self._node(name, node, slurm) for name, node in named.items()}
        if not nodes:
            raise self._wrong("nodes is empty: name every machine, with its address and roles")
        file = NodeFile(path=self.path, run=run, nodes=nodes, pods=pods, **{"config": "default", **texts})
        if any(node.is_server for node in nodes.values()) and not file.server:
            raise self._wrong("a node has the role server: write the folder that millrace cluster made for it in server")
        if not _PATH.match(str(file.address_file or "/")):
            raise self._wrong(f"url is {file.url!r}: write an absolute path that all nodes see, of {_PLAIN} and /")
        if file.address_file is None:
            server_urls(file.url)
        elif sum(node.is_server for node in nodes.values()) > 1:
            raise self._wrong(
                "several nodes have the role server, which have to find each other: write their addresses in url"
            )
        trainers = [name for name, node in nodes.items() if node.share(Role.TRAINER) is not None]
        if len(trainers) > 1 and not file.trainer_network:
            raise self._wrong(
                f"{' and '.join(trainers)} have the role trainer, which is one job: write in trainer_network where their "
                "ranks meet, as 10.1.0.0/16. They speak without credentials and encryption: let nobody else into that network"
            )
        if file.trainer_network and not _is_network(file.trainer_network):
            raise self._wrong(f"trainer_network is {file.trainer_network!r}: write an IPv4 network, as 10.1.0.0/16")
        return file

    def _node(self, name: str, content: object, slurm: Mapping[str, str]) -> Node:
        subject_token(name, what=f"{self.path}: the node")
        given = self._mapping(content, f"nodes.{name}", ("address", "roles", "slurm"))
        roles = self._mapping(given.get("roles"), f"nodes.{name}.roles", tuple(role.value for role in ROLES))
        if not roles:
            raise self._wrong(f"nodes.{name}.roles is empty: write what runs there, as in browser: 2")
        shares = {Role(role): self._share(Role(role), share, f"nodes.{name}.roles.{role}") for role, share in roles.items()}
        address = self._text(given.get("address", name), f"nodes.{name}.address")
        if not _ADDRESS.match(address):
            raise self._wrong(f"nodes.{name}.address is {address!r}: write a host, or user@host, as ssh takes it")
        own = read_slurm_settings(given.get("slurm", {}), f"nodes.{name}.slurm", self._wrong)
        listed = tuple(shares[role] for role in ROLES if role in shares)
        return Node(name=name, address=address, shares=listed, slurm={**slurm, **own})

    def _share(self, role: Role, content: object, where: str) -> Share:
        if isinstance(content, int) and not isinstance(content, bool):
            content = {"count": content}
        given = self._mapping(content, where, ("count", "gpus", "config"))
        gpus = self._gpus(given.get("gpus", []), f"{where}.gpus")
        if gpus and role not in _WITH_GPUS:
            raise self._wrong(f"{where}.gpus: a {role.value} uses none")
        count = given.get("count", len(gpus) or 1)
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise self._wrong(f"{where}.count is {count!r}: write a whole number of 1 or more, or leave the role out")
        if gpus and count != len(gpus):
            raise self._wrong(f"{where}: {count} processes and {len(gpus)} entries in gpus: write one entry per process")
        if count > 1 and role in _SINGLE and not gpus:
            raise self._wrong(f"{where}.count is {count}: one {role.value} runs on a node")
        return Share(role=role, count=count, gpus=gpus, config=self._overrides(given.get("config", []), f"{where}.config"))

    def _gpus(self, content: object, where: str) -> tuple[str, ...]:
        entries = content if isinstance(content, list) else [content]
        lists = [entry if isinstance(entry, list) else [entry] for entry in entries]
        if any(not isinstance(gpu, int) or isinstance(gpu, bool) or gpu < 0 for gpus in lists for gpu in gpus):
            raise self._wrong(f"{where}: write one entry per process, as in [0, 1], or [[0, 1], [2, 3]] for two GPUs each")
        named = tuple(",".join(map(str, gpus)) for gpus in lists)
        if twice := named_twice(named):
            raise self._wrong(
                f"{where} names GPU {twice} twice: write each once, as in [0, 1], or [[0, 1]] for one process that sees both"
            )
        return named

    def _overrides(self, content: object, where: str) -> tuple[str, ...]:
        if not isinstance(content, list) or any(not isinstance(text, str) or "=" not in text for text in content):
            raise self._wrong(f"{where}: write a list of KEY=VALUE, as in [env_config.server_size=32]")
        return tuple(content)

    def _mapping(self, content: object, where: str, known: Iterable[str] | None) -> dict[str, object]:
        if not isinstance(content, dict):
            raise self._wrong(f"{where} holds no keys with values")
        for key in content:
            if not isinstance(key, str) or (known is not None and key not in known):
                near = difflib.get_close_matches(str(key), tuple(known or ()), n=1, cutoff=0.0)
                meant = f": did you mean {near[0]}?" if near else ""
                raise self._wrong(f"{where} has the key {key!r}{meant}")
        return content

    def _text(self, content: object, where: str) -> str:
        if not isinstance(content, str) or not content or "\n" in content:
            raise self._wrong(f"{where} is {content!r}: write one line of text")
        return content

    def _wrong(self, what: str) -> ConfigurationError:
        return ConfigurationError(f"{self.path}: {what}")
