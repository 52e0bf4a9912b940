"""Pods as a cluster would take them: who may do what, what is mounted, and how many there are."""

import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from bus.server.patience import START_S, reading_s
from ops.launch.kubernetes import Images, manifests
from ops.launch.node_file import read_node_file
from ops.launch.seccomp import chromium_seccomp
from schemas.errors import ConfigurationError
from tests.deadlines import HANGS_S

IMAGES = Images(workers="mine:1", servers="nats:2")
NODES: dict[str, Any] = {
    "run": "mine",
    "config": "simulation",
    "url": "tls://nats-1:4222",
    "ca_file": "/etc/millrace/ca.pem",
    "keys": "/etc/millrace/keys",
    "folder": "/var/lib/millrace/mine",
    "server": "/var/lib/millrace/server",
    "nodes": {
        "nats-1": {"roles": {"server": 1}},
        "cpu-1": {
            "roles": {"feeder": 1, "judge": 2, "archiver": 1, "browser": {"count": 3, "config": ["env_config.server_size=16"]}}
        },
        "gpu-1": {"roles": {"policy": {"gpus": [0, [1, 2]]}, "trainer": {"gpus": [3, 4]}}},
    },
}
SCALE = {"browser": {"min": 0, "max": 20, "prometheus": "http://prometheus.monitoring:9090"}}


def made(folder: Path, **kubernetes: object) -> list[dict[str, Any]]:
    path = folder / "nodes.yaml"
    path.write_text(yaml.safe_dump({**NODES, **({"kubernetes": kubernetes} if kubernetes else {})}))
    return list(yaml.safe_load_all(manifests(read_node_file(path), IMAGES)))


def of(found: list[dict[str, Any]], kind: str, ending: str) -> dict[str, Any]:
    (one,) = (each for each in found if each["kind"] == kind and each["metadata"]["name"].endswith(ending))
    return one


def pods(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in found
        if each["kind"] in ("Deployment", "StatefulSet")
    }


@pytest.mark.parametrize("version", ["1.28", "1.34", "1.37"])
def test_the_strict_schemas_of_clusters_take_them(version: str, tmp_path: Path) -> None:
    for extra in ({}, {"volumes": {"/models": "models"}, "monitor": "monitor.example", "scale": SCALE}):
        for manifest in made(tmp_path, **extra):
            if manifest["kind"] != "ScaledObject":  # of KEDA, not of Kubernetes
                kubernetes_validate.validate(manifest, version, strict=True)


def test_no_two_manifests_have_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long or alike the names of run and nodes are."""
    roles = {"roles": {"server": 1, "browser": 1, "archiver": 1}}
    names = ("rack12-gpu-node-01", "rack12-gpu-node-02", "gpu_1", "gpu-1", "GPU-1")
    nodes = {name: {"address": f"nats-{number}", **roles} for number, name in enumerate(names)}
    monkeypatch.setitem(NODES, "run", "webgym-qwen3-vl-8b-online-lr1e6-seed0")
    monkeypatch.setitem(NODES, "nodes", nodes)
    found = made(tmp_path, volumes={"/data/a_b": "one", "/data/a-b": "other"}, monitor="monitor.example")
    identities = [(each["kind"], each["metadata"]["name"]) for each in found]
    assert len(set(identities)) == len(identities)
    for name, pod in pods(found).items():
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name)
        volumes = [volume["name"] for volume in pod["volumes"]]
        assert len(set(volumes)) == len(volumes)


def test_no_pod_is_root_writes_its_image_or_has_capabilities(tmp_path: Path) -> None:
    for name, pod in pods(made(tmp_path, monitor="monitor.example")).items():
        security, (container,) = pod["securityContext"], pod["containers"]
        assert (security["runAsNonRoot"], security["runAsUser"]) == (True, 10001)
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name
        expected = (
            {"type": "Localhost", "localhostProfile": "millrace-chromium.json"}
            if "browser" in name
            else {"type": "RuntimeDefault"}
        )
        assert security["seccompProfile"] == expected
        assert pod["automountServiceAccountToken"] is False
        assert "livenessProbe" in container
        assert container["resources"]["limits"]["memory"]


def test_a_server_may_read_its_whole_volume_before_it_is_taken_for_dead(tmp_path: Path) -> None:
    (server,) = (each for each in made(tmp_path) if each["kind"] == "StatefulSet" and "volumeClaimTemplates" in each["spec"])
    (container,), (claim,) = server["spec"]["template"]["spec"]["containers"], server["spec"]["volumeClaimTemplates"]
    probe, storage = container["startupProbe"], claim["spec"]["resources"]["requests"]["storage"]
    volume_bytes = int(storage.removesuffix("Gi")) * 2**30
    assert probe["periodSeconds"] * probe["failureThreshold"] >= START_S + reading_s(volume_bytes)
    assert "initialDelaySeconds" not in container["livenessProbe"], "it begins when the server has answered"


def test_what_a_worker_writes_is_mounted(tmp_path: Path) -> None:
    for name, pod in pods(made(tmp_path)).items():
        if "server" in name:
            continue
        (container,) = pod["containers"]
        writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
        assert writable == {"/etc/millrace/keys", "/var/lib/millrace/mine", "/home/millrace", "/tmp", "/dev/shm"}
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes
        assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", volume) for volume in volumes)
        written = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert written["HOME"] == "/home/millrace"
        assert written["MILLRACE_ALIVE_FILE"].startswith("/tmp/")


def test_models_and_tasks_come_from_claims_that_exist(tmp_path: Path) -> None:
    found = made(tmp_path, volumes={"/models": "models", "/data/tasks": "tasks"})
    for pod in (pod for name, pod in pods(found).items() if "server" not in name):
        (container,) = pod["containers"]
        mounted = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        assert mounted["/models"]["readOnly"]
        claims = {volume["name"]: volume.get("persistentVolumeClaim") for volume in pod["volumes"]}
        assert claims[mounted["/data/tasks"]["name"]] == {"claimName": "tasks", "readOnly": True}


def test_memory_and_cpu_follow_sessions_unless_a_person_says_otherwise(tmp_path: Path) -> None:
    asked = {"requests": {"cpu": "8", "memory": "24Gi"}, "limits": {"memory": "32Gi"}}
    found = pods(made(tmp_path, resources={"policy": asked}))
    resources = {name.rpartition("-")[2]: pod["containers"][0]["resources"] for name, pod in found.items()}
    assert resources["browser"] == {"requests": {"cpu": "4", "memory": "4224Mi"}, "limits": {"memory": "8448Mi"}}
    assert resources["policy"] == {**asked, "limits": {"memory": "32Gi", "nvidia.com/gpu": "2"}}
    assert resources["trainer"]["limits"] == {"memory": "128Gi", "nvidia.com/gpu": "2"}


def test_browsers_are_as_many_as_their_queue_asks_for(tmp_path: Path) -> None:
    found = made(tmp_path, scale=SCALE)
    scaled = of(found, "ScaledObject", "cpu-1-browser")["spec"]
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (0, 20)
    assert scaled["scaleTargetRef"]["name"] == "millrace-mine-cpu-1-browser"
    (trigger,) = scaled["triggers"]
    assert trigger["metadata"]["threshold"] == "16"
    of_browsers = '{run="mine",queue=~"browsers_.+"}'
    assert (
        trigger["metadata"]["query"]
        == f"sum(millrace_queue_pending{of_browsers}) + sum(millrace_queue_in_flight{of_browsers})"
    )
    assert "replicas" not in of(found, "Deployment", "cpu-1-browser")["spec"]
    assert of(found, "Deployment", "cpu-1-judge")["spec"]["replicas"] == 2


def test_nobody_calls_a_worker_and_browsers_reach_no_network_of_the_clusters(tmp_path: Path) -> None:
    found = made(tmp_path)
    workers, server, browser = (of(found, "NetworkPolicy", ending)["spec"] for ending in ("mine", "-server", "-browser"))
    assert (workers["policyTypes"], "ingress" in workers) == (["Ingress"], False)
    assert [rule["ports"] for rule in server["ingress"]] == [[{"port": 4222}], [{"port": 6222}]]
    blocks = [to["ipBlock"] for rule in browser["egress"] for to in rule["to"] if "ipBlock" in to]
    assert {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"} <= set(blocks[0]["except"])
    assert blocks[1]["cidr"] == "2000::/3"


def test_a_monitor_is_reached_with_tls_and_a_token(tmp_path: Path) -> None:
    pod = pods(made(tmp_path, monitor="monitor.example"))["millrace-mine-monitor"]
    (container,) = pod["containers"]
    (*_, script) = container["command"]
    assert subprocess.run(["sh", "-n", "-c", script], check=False, timeout=HANGS_S).returncode == 0
    for words in (
        "--host 0.0.0.0 --name monitor.example",
        "--tls-cert /etc/millrace/keys/tls.crt --tls-key /etc/millrace/keys/tls.key --token-file /etc/millrace/keys/token",
    ):
        assert words in script
    assert not any(each["metadata"]["name"].endswith("monitor") for each in made(tmp_path))


@pytest.mark.parametrize(
    ("kubernetes", "says"),
    [
        ({"volume": {}}, "has the key 'volume': write one of volumes, resources, monitor, scale"),
        ({"volumes": {"models": "models"}}, "write a path and a claim's name"),
        ({"resources": {"server": {}}}, "kubernetes.resources has the key 'server'"),
        ({"resources": {"judge": {"limit": {}}}}, "kubernetes.resources.judge has the key 'limit'"),
        ({"monitor": "Monitor!"}, "kubernetes.monitor is 'Monitor!'"),
        ({"scale": {"trainer": SCALE["browser"]}}, "kubernetes.scale has the key 'trainer'"),
        ({"scale": {"browser": {"min": 2, "max": 1, "prometheus": "http://p"}}}, "write min and max"),
        ({"scale": {"browser": {"max": 2, "prometheus": "p:9090"}}}, "write where Prometheus answers"),
    ],
)
def test_what_is_wrong_is_said(kubernetes: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        made(tmp_path, **kubernetes)
    assert says in str(refused.value)


def test_only_one_node_of_a_role_scales(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NODES, "nodes", {**NODES["nodes"], "cpu-2": {"roles": {"browser": 1}}})
    with pytest.raises(
        ConfigurationError, match=r"kubernetes.scale.browser is for one node, and cpu-1 and cpu-2 have the role"
    ):
        made(tmp_path, scale=SCALE)
    assert made(tmp_path)


def test_the_profile_lets_chromium_make_its_sandbox_and_nobody_mount() -> None:
    profile = yaml.safe_load(chromium_seccomp())
    refused = {name for rule in profile["syscalls"] for name in rule["names"]}
    assert refused.isdisjoint({"clone", "clone3", "unshare", "chroot", "seccomp", "prctl", "ptrace"})
    assert {"mount", "setns", "bpf", "init_module", "keyctl", "io_uring_setup"} <= refused
