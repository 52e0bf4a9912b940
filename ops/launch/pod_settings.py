"""What a node file says of pods alone: volumes that exist, resources by role, and how many browsers there may be.

kubernetes:
  volumes: {/models: models, /data: tasks}   # mount path: claim that exists; read only
  resources:                                  # as Kubernetes takes them, in place of what is computed
    browser: {requests: {cpu: "8", memory: 24Gi}, limits: {memory: 48Gi}}
  monitor: monitor.example                    # its host in certificate and Service; without it there is none
  scale: {browser: {min: 1, max: 20, prometheus: "http://prometheus.monitoring:9090"}}
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ops.config.loading import load_config
from schemas.errors import ConfigurationError
from schemas.messages import Role

_PATH = re.compile(r"/[A-Za-z0-9._/-]+\Z")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")
_URL = re.compile(r"https?://[A-Za-z0-9.-]+(:\d+)?(/[A-Za-z0-9._/-]*)?\Z")
_SESSIONS_A_CORE, _SESSION_MI, _BROWSER_MI = 4, 200, 1024
"""A core plays about so many sessions (docs/benchmarks.md, browsers); pages of the live web are larger than those there."""
_OF_ROLE: Mapping[Role, tuple[str, str]] = {
    Role.FEEDER: ("500m", "2Gi"),
    Role.JUDGE: ("1", "2Gi"),
    Role.ARCHIVER: ("500m", "2Gi"),
    Role.POLICY: ("4", "32Gi"),
    Role.TRAINER: ("8", "64Gi"),
}
_KEYS = ("volumes", "resources", "monitor", "scale")

Resources = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Of a role's pods, by what waits in its queue."""

    least: int
    most: int
    prometheus: str


@dataclass(frozen=True, kw_only=True)
class PodSettings:
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Claim by mount path."""
    resources: Mapping[Role, Resources] = field(default_factory=dict)
    monitor: str = ""
    scale: Mapping[Role, Scale] = field(default_factory=dict)

    def resources_of(self, role: Role, num_sessions: int) -> dict[str, dict[str, str]]:
        """Requests, and a bound of memory of twice as much: what takes more is ended before the node's other pods are."""
        if role in self.resources:
            return {kind: dict(amounts) for kind, amounts in self.resources[role].items()}
        if role is Role.BROWSER:
            cpu, memory = str(math.ceil(num_sessions / _SESSIONS_A_CORE)), _BROWSER_MI + num_sessions * _SESSION_MI
            return {"requests": {"cpu": cpu, "memory": f"{memory}Mi"}, "limits": {"memory": f"{2 * memory}Mi"}}
        cpu, asked = _OF_ROLE[role]
        return {"requests": {"cpu": cpu, "memory": asked}, "limits": {"memory": f"{2 * int(asked[:-2])}Gi"}}


def sessions_of(recipe: str, overrides: Sequence[str]) -> int:
    """Browser sessions of one worker. Raises `ConfigurationError`."""
    return load_config(recipe, list(overrides)).env_config.server_size


def read_pod_settings(content: object, wrong: Callable[[str], ConfigurationError]) -> PodSettings:
    """`wrong` makes the error of a sentence. Raises it."""
    given = _mapping(content, "kubernetes", _KEYS, wrong)
    monitor = given.get("monitor", "")
    if monitor and not (isinstance(monitor, str) and _NAME.match(monitor)):
        raise wrong(f"kubernetes.monitor is {monitor!r}: write the host by which it is reached, as in monitor.example")
    return PodSettings(
        volumes=_volumes(given.get("volumes", {}), wrong),
        resources={
            role: _resources(each, f"kubernetes.resources.{role.value}", wrong)
            for role, each in _by_role(given.get("resources", {}), "kubernetes.resources", tuple(_OF_ROLE), wrong).items()
        },
        monitor=str(monitor),
        scale={
            role: _scale(each, f"kubernetes.scale.{role.value}", wrong)
            for role, each in _by_role(given.get("scale", {}), "kubernetes.scale", (Role.POLICY, Role.JUDGE), wrong).items()
        },
    )


def _volumes(content: object, wrong: Callable[[str], ConfigurationError]) -> dict[str, str]:
    given = _mapping(content, "kubernetes.volumes", None, wrong)
    for path, claim in given.items():
        if not _PATH.match(path) or not (isinstance(claim, str) and _NAME.match(claim)):
            raise wrong(f"kubernetes.volumes has {path!r}: {claim!r}: write a path and a claim's name, as in /models: models")
    return {path: str(claim) for path, claim in given.items()}


def _by_role(
    content: object, where: str, others: tuple[Role, ...], wrong: Callable[[str], ConfigurationError]
) -> dict[Role, object]:
    known = tuple(role.value for role in (Role.BROWSER, *others))
    return {Role(role): each for role, each in _mapping(content, where, known, wrong).items()}


def _resources(content: object, where: str, wrong: Callable[[str], ConfigurationError]) -> dict[str, dict[str, str]]:
    given = _mapping(content, where, ("requests", "limits"), wrong)
    return {
        kind: {name: str(amount) for name, amount in _mapping(each, f"{where}.{kind}", None, wrong).items()}
        for kind, each in given.items()
    }


def _scale(content: object, where: str, wrong: Callable[[str], ConfigurationError]) -> Scale:
    given = _mapping(content, where, ("min", "max", "prometheus"), wrong)
    least, most, prometheus = given.get("min", 1), given.get("max"), given.get("prometheus")
    if not isinstance(least, int) or not isinstance(most, int) or not 0 <= least <= most or most < 1:
        raise wrong(f"{where}: write min and max, whole numbers of pods, as in min: 1, max: 20")
    if not isinstance(prometheus, str) or not _URL.match(prometheus):
        raise wrong(f"{where}.prometheus is {prometheus!r}: write where Prometheus answers, as in http://prometheus:9090")
    return Scale(least=least, most=most, prometheus=prometheus)


def _mapping(
    content: object, where: str, known: tuple[str, ...] | None, wrong: Callable[[str], ConfigurationError]
) -> dict[str, Any]:
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise wrong(f"{where} holds no keys with values")
    for key in content:
        if known is not None and key not in known:
            raise wrong(f"{where} has the key {key!r}: write one of {', '.join(known)}")
    return content
