"""The node file by value: what is read, what is refused and with which words, and the processes that a node runs."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.lowlevel
import pytest
import yaml

import ops.launch.node
from ops.cli import main
from ops.config.loading import load_config
from ops.launch.devices import on_devices
from ops.launch.environment_file import read_environment
from ops.launch.job import Job
from ops.launch.kubernetes import Images, manifests
from ops.launch.node_file import NodeFile, administered, read_node_file
from ops.launch.processes import Given, processes
from ops.processes.supervisor import RoleSpec, Supervisor
from ops.processes.supervisor import supervise as supervised
from ops.run.alone import alone
from ops.run.folder import RunFolder
from schemas.errors import ConfigurationError

PATHS = {"ca_file": "/etc/m/ca.pem", "keys": "/etc/m/{node}/keys", "folder": "/var/lib/m"}
NODES = {
    "cpu-1": {
        "address": "10.0.0.1",
        "roles": {"browser": {"count": 2, "config": ["env_config.server_size=32"]}, "server": 1, "feeder": 1},
    },
    "gpu-1": {"roles": {"policy": {"gpus": [0, [1, 2]]}, "trainer": {"gpus": [3, 4]}, "judge": 1, "archiver": 1}},
}
FILE = {"run": "mine", "url": "tls://a:4222,tls://b:4222", "server": "/etc/m/server", **PATHS, "nodes": NODES}


def written(folder: Path, content: object) -> NodeFile:
    path = folder / "nodes.yaml"
    path.write_text(yaml.safe_dump(content))
    return read_node_file(path)


def test_every_process_of_a_node_is_named_and_told_where_the_run_is(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("defaults: [update_online, _self_]\n")
    file = written(tmp_path, {**FILE, "config": "own.yaml"})
    node = file.node("cpu-1")
    given = Given(server_binary=Path("/bin/nats-server"), environment={"API_KEY": "k"})
    server, feeder, *browsers = processes(file.of(node), node, given)
    assert (server.argv, server.folder, server.env) == (("/bin/nats-server", "-c", "nats.conf"), Path("/etc/m/server"), {})
    assert [spec.name for spec in (feeder, *browsers)] == ["cpu-1-feeder-1", "cpu-1-browser-1", "cpu-1-browser-2"]
    command = browsers[1].argv[browsers[1].argv.index("browser") :]
    options = {"--run-dir": "/var/lib/m", "--config": str(tmp_path / "own.yaml"), "--name": "cpu-1-browser-2"}
    assert dict(zip(command[1:7:2], command[2:7:2], strict=True)) == options
    config = load_config(options["--config"], command[7:])
    assert (config.bus_config.url, config.bus_config.keys) == ("tls://a:4222,tls://b:4222", "/etc/m/cpu-1/keys")
    assert (config.bus_config.run, config.env_config.server_size) == ("mine", 32)
    assert all(spec.env == {"API_KEY": "k"} for spec in (feeder, *browsers))


def test_each_policy_has_gpus_of_its_own_and_a_trainer_is_one_job_of_ranks(tmp_path: Path) -> None:
    file = written(tmp_path, FILE)
    node = file.node("gpu-1")
    specs = {spec.name: spec for spec in processes(file.of(node), node, Given(server_binary=None, environment={}))}
    assert list(specs) == ["gpu-1-policy-1", "gpu-1-policy-2", "gpu-1-judge-1", "gpu-1-archiver-1", "gpu-1-trainer-1"]
    seen = {name: spec.env.get("CUDA_VISIBLE_DEVICES") for name, spec in specs.items()}
    assert list(seen.values()) == ["0", "1,2", None, None, "3,4"]
    trainer = specs["gpu-1-trainer-1"].argv
    assert trainer[:2] == (sys.executable, "-P")
    assert trainer[2:6] == ("-m", "ops.launch.ranks", "2", "--")
    assert "trainer" in trainer
    assert "archive" in specs["gpu-1-archiver-1"].argv


SLURM = {"SLURM_JOB_ID": "7"}


@pytest.mark.parametrize(
    ("environment", "seen"),
    [
        ({}, ["8", "9,10", "11", "12"]),
        (SLURM, ["0", "1,2", "3", "4"]),
        ({**SLURM, "CUDA_VISIBLE_DEVICES": "0,1,2,3,4"}, ["0", "1,2", "3", "4"]),
        ({**SLURM, "CUDA_VISIBLE_DEVICES": "3, 4,5,6,7"}, ["3", "4,5", "6", "7"]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b,GPU-c,GPU-d,GPU-e"}, ["GPU-a", "GPU-b,GPU-c", "GPU-d", "GPU-e"]),
        ({"CUDA_VISIBLE_DEVICES": "7,8,9,10,11,12"}, ["8", "9,10", "11", "12"]),
    ],
)
def test_a_node_sees_no_devices_but_those_that_it_was_given(
    environment: dict[str, str], seen: list[str], tmp_path: Path
) -> None:
    roles = {"policy": {"gpus": [8, [9, 10]]}, "trainer": {"gpus": [11, 12]}}
    file = written(tmp_path, {**FILE, "nodes": {"gpu-1": {"roles": roles}}})
    node = on_devices(file.node("gpu-1"), environment)
    assert [gpu for share in node.shares for gpu in share.gpus] == seen
    specs = processes(file.of(node), node, Given(server_binary=None, environment={}))
    assert ",".join(spec.env["CUDA_VISIBLE_DEVICES"] for spec in specs) == ",".join(seen)


@pytest.mark.anyio
async def test_processes_of_a_node_in_a_job_see_the_job_s_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[RoleSpec] = []

    @asynccontextmanager
    async def supervise(logs: Path, **settings: object) -> AsyncIterator[Supervisor]:
        async with supervised(logs) as supervisor:
            monkeypatch.setattr(supervisor, "start", started.append)
            monkeypatch.setattr(supervisor, "wait", lambda _: anyio.lowlevel.checkpoint())
            yield supervisor

    monkeypatch.setattr(ops.launch.node, "supervise", supervise)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "9,8,7,6,5")
    file = written(tmp_path, {**FILE, "folder": str(tmp_path)}).path
    assert await ops.launch.node.main(file, "gpu-1", check=False) == 0
    seen = [spec.env.get("CUDA_VISIBLE_DEVICES") for spec in started]
    assert seen == ["9", "8,7", None, None, "6,5"]


def test_a_node_runs_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, {**FILE, "folder": str(tmp_path / "run")}).path
    with alone(RunFolder(tmp_path / "run"), "gpu-1"):
        assert main(["node", "--file", str(file), "--name", "gpu-1"]) == 78
    assert "keeps the roles of gpu-1 running there" in capsys.readouterr().err


def test_a_node_that_was_given_too_few_devices_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, FILE).path
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    assert main(["node", "--file", str(file), "--name", "gpu-1", "--check"]) == 78
    assert "the GPUs 0, 1, 2, 3, 4 in its file, and was given CUDA_VISIBLE_DEVICES='0,1,2,3': ask for 5" in (
        capsys.readouterr().err
    )


def test_nodes_that_share_a_trainer_run_its_ranks_as_one_job(tmp_path: Path) -> None:
    roles = {"trainer": {"gpus": [0, 1]}}
    nodes = {"gpu-1": {"roles": roles}, "gpu-2": {"roles": {"trainer": {"gpus": [4, 5, 6]}}}}
    file = written(tmp_path, {**FILE, "trainer_network": "10.1.0.0/16", "nodes": nodes})
    assert Job.of(file) == Job(nodes=("gpu-1", "gpu-2"), num_ranks=(2, 3))
    node = file.node("gpu-2")
    (spec,) = processes(file.of(node), node, Given(server_binary=None, environment={}))
    assert (spec.name, spec.env) == ("gpu-2-job", {"CUDA_VISIBLE_DEVICES": "4,5,6"})
    assert spec.argv[:7] == (sys.executable, "-P", "-m", "ops.launch.job", str(file.path), "gpu-2", "--")
    assert spec.argv[spec.argv.index("--name") + 1] == "gpu-1-trainer-1", "the name is rank 0's"
    with pytest.raises(ConfigurationError, match="several nodes have the role trainer"):
        manifests(file, Images(workers="w", servers="s"))


@pytest.mark.parametrize("network", ["10.1.0.1/16", "10.1.0.1/32", "lan"])
def test_a_network_of_ranks_is_one(tmp_path: Path, network: str) -> None:
    with pytest.raises(ConfigurationError, match=r"write an IPv4 network, as 10\.1\.0\.0/16"):
        written(tmp_path, {**FILE, "trainer_network": network})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rum": "mine"}, "the file has the key 'rum': did you mean run"),
        ({"run": "a.b"}, "run 'a.b' cannot name"),
        ({"url": ""}, "url is '': write one line"),
        ({"url": "tls://a:99999"}, "bus_config.url has 'tls://a:99999': write scheme, host and port"),
        ({"url": "tls://me:secret@a:4222"}, "bus_config.url names a user or a password"),
        ({"url": "file:server.json"}, "bus_config.url is file:server.json: write the whole path"),
        ({"url": "file:/shared/$(id)"}, "url is 'file:/shared/$(id)': write an absolute path that all nodes see"),
        (
            {"url": "file:/shared/server.json", "nodes": {"a": {"roles": {"server": 1}}, "b": {"roles": {"server": 1}}}},
            "several nodes have the role server, which have to find each other",
        ),
        ({"keys": "keys"}, "keys is 'keys': write an absolute path"),
        ({"keys": "/etc/$(id)"}, "keys is '/etc/$(id)': write an absolute path"),
        ({"config": "../recipe.yaml"}, "config is '../recipe.yaml': write a recipe"),
        ({"nodes": {"a": {"address": "-oProxyCommand=x", "roles": {"judge": 1}}}}, "nodes.a.address is '-oProxyCommand=x'"),
        ({"server": None}, "server is None"),
        ({"nodes": {}}, "nodes is empty"),
        ({"nodes": {"a b": {}}}, "the node 'a b' cannot name"),
        ({"nodes": {"a": {"roles": {}}}}, "nodes.a.roles is empty"),
        ({"nodes": {"a": {"roles": {"brower": 1}}}}, "nodes.a.roles has the key 'brower': did you mean browser?"),
        ({"nodes": {"a": {"roles": {"browser": 0}}}}, "nodes.a.roles.browser.count is 0"),
        ({"nodes": {"a": {"roles": {"browser": True}}}}, "nodes.a.roles.browser holds no keys"),
        ({"nodes": {"a": {"roles": {"judge": {"gpus": [0]}}}}}, "a judge uses none"),
        ({"nodes": {"a": {"roles": {"policy": {"gpus": ["x"]}}}}}, "nodes.a.roles.policy.gpus: write one entry per process"),
        ({"nodes": {"a": {"roles": {"policy": {"gpus": [0], "count": 2}}}}}, "2 processes and 1 entries in gpus"),
        ({"nodes": {"a": {"roles": {"policy": {"gpus": [0, [1, 0]]}}}}}, "policy.gpus names GPU 0 twice: write each once"),
        ({"nodes": {"a": {"roles": {"trainer": 2}}}}, "one trainer runs on a node"),
        (
            {"nodes": {"a": {"roles": {"trainer": 1}}, "b": {"roles": {"trainer": 1}}}},
            "a and b have the role trainer, which is one job: write in trainer_network",
        ),
        ({"nodes": {"a": {"roles": {"judge": {"config": "x=1"}}}}}, "write a list of KEY=VALUE"),
        ({"slurm": ["--mem=4G"]}, "slurm holds no options: write sbatch's own"),
        ({"slurm": {"--mem": "4G"}}, "slurm has the key '--mem': write an option of sbatch by its long name"),
        ({"slurm": {"time": 86400}}, "slurm.time is 86400: write one word, in quotes where it has colons, as '24:00:00'"),
        ({"slurm": {"time": 86400.5}}, "slurm.time is 86400.5: write one word"),
        ({"slurm": {"comment": "a\n#SBATCH --uid=0"}}, "slurm.comment is "),
        ({"nodes": {"a": {"roles": {"judge": 1}, "slurm": {"gpus": 2}}}}, "nodes.a.slurm.gpus: the script says that itself"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(change: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        written(tmp_path, {**FILE, **change})
    assert words in str(refused.value)


def test_a_node_with_a_server_needs_its_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="write the folder that millrace cluster made"):
        written(tmp_path, {key: value for key, value in FILE.items() if key != "server"})


def test_the_command_lists_what_it_would_run_and_refuses_unknown_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, FILE).path
    assert main(["node", "--file", str(file), "--name", "gpu-1", "--check"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "gpu-1-policy-1"
    assert main(["node", "--file", str(file), "--name", "gpu-2", "--check"]) == 78
    assert "write one of cpu-1, gpu-1" in capsys.readouterr().err
    assert main(["node", "--file", str(file), "--name", "cpu-1", "--check"]) == 78
    assert "/etc/m/server holds no nats.conf" in capsys.readouterr().err


def test_an_environment_is_its_owners_alone_and_no_secret_is_told(tmp_path: Path) -> None:
    path = tmp_path / "environment"
    path.write_text("# keys\n\nexport OPENAI_API_KEY=sk-1=2 \nQUOTED='a b'\n")
    with pytest.raises(ConfigurationError, match="can be read by others: chmod 600"):
        read_environment(path)
    path.chmod(0o600)
    assert read_environment(path) == {"OPENAI_API_KEY": "sk-1=2", "QUOTED": "a b"}
    path.write_text("sk-secret\n")
    with pytest.raises(ConfigurationError) as refused:
        read_environment(path)
    assert str(refused.value) == f"{path}, line 1: write KEY=VALUE"


@pytest.mark.parametrize(
    ("content", "known"),
    [
        ("\ufeffKEY=a\r\nOTHER=b\r\n".encode(), {"KEY": "a", "OTHER": "b"}),
        ("KEY=a\u2028b\x85c\x0cd\n".encode(), {"KEY": "a\u2028b\x85c\x0cd"}),
    ],
)
def test_an_environment_is_read_as_editors_write_it(content: bytes, known: dict[str, str], tmp_path: Path) -> None:
    (path := tmp_path / "environment").write_bytes(content)
    path.chmod(0o600)
    assert read_environment(path) == known


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"KEY=secret\nOTHER=\xff\n", r"environment is not UTF-8 text \(byte 17\): save it as such"),
        (b"KEY=sec\0ret\n", "environment, line 1: write KEY=VALUE"),
        (None, "environment cannot be read"),
    ],
)
def test_what_is_no_environment_is_told(content: bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "environment"
    path.mkdir() if content is None else path.write_bytes(content)
    path.chmod(0o700)
    with pytest.raises(ConfigurationError, match=said) as refused:
        read_environment(path)
    assert "secret" not in str(refused.value)


def test_the_administrator_joins_with_the_keys_that_stayed_with_the_cluster_s_files(tmp_path: Path) -> None:
    path = written(tmp_path, FILE).path
    bus = administered(path, tmp_path / "cluster", ["bus_config.replicas=3"]).bus_config
    assert (bus.run, bus.url, bus.replicas) == ("mine", "tls://a:4222,tls://b:4222", 3)
    assert (bus.keys, bus.ca_file) == (f"{tmp_path}/cluster/keys/mine", f"{tmp_path}/cluster/ca.pem")
