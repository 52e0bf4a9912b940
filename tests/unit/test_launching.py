"""What nodes are started with: units, scripts and manifests that their readers accept; ssh is a stand-in that runs here."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

import ops.launch.node_file
from bus.server.keys import write_private
from ops.cli import main
from ops.launch.extras import extras_of
from ops.launch.node_file import read_node_file
from ops.launch.ssh import starting
from ops.processes.role_process import millrace_command, millrace_environment
from schemas.errors import ConfigurationError
from schemas.messages import Role
from tests.deadlines import HANGS_S

ROOT = Path(__file__).parents[2]
VENV = Path(sys.prefix)
SSH = """#!/bin/sh
# Stands in for ssh: says to whom it would have gone, and runs the command on this machine.
while [ "$1" != -- ]; do shift; done
echo "$2" >>"$SSH_LOG"
exec sh -c "$3"
"""


def _own_prompt(nodes: Path, version: str = "./mine.txt") -> None:
    (nodes.parent / "mine.txt").write_text("$definition")
    (nodes.parent / "own.yaml").write_text(f"defaults: [simulation, _self_]\nmodel_config: {{prompt_version: {version}}}\n")


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    folder = tmp_path / "cluster"
    for name in ("ca.pem", "keys/mine/browser.seed", "keys/mine/policy.seed", "keys/mine/admin.seed"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_private(folder / name, f"secret {name}".encode())
    return folder


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    content = {
        "run": "mine",
        "config": "own.yaml",
        "url": "tls://nats-1:4222",
        **{name: f"{tmp_path}/on-{{node}}/{name}" for name in ("ca_file", "keys", "folder", "server")},
        "source": str(ROOT),
        "venv": str(VENV),
        "slurm": {"account": "lab", "time": "24:00:00", "mem": "8G", "exclusive": True},
        "nodes": {
            "nats-1": {"roles": {"server": 1}, "slurm": {"mem": "2G", "cpus-per-task": 2, "exclusive": False}},
            "cpu-1": {"address": "me@cpu-1.lan", "roles": {"browser": {"count": 2, "config": ["env_config.server_size=9"]}}},
            "gpu-1": {"address": "gpu-1.lan", "roles": {"policy": {"gpus": [0, [1, 2]]}, "trainer": {"gpus": [3, 4]}}},
        },
    }
    path = tmp_path / "nodes.yaml"
    path.write_text(yaml.safe_dump(content))
    (tmp_path / "own.yaml").write_text("defaults: [simulation, _self_]\n")
    return path


def _roles_wait(nodes: Path) -> None:
    """For a server that never says where it is: they are begun again and again, and none of them ends for good."""
    content = yaml.safe_load(nodes.read_text())
    nodes.write_text(yaml.safe_dump({**content, "url": f"file:{nodes.parent}/shared/server.json"}))


def launched(nodes: Path, *arguments: str) -> int:
    return main(["launch", "--file", str(nodes), *arguments])


def test_units_are_what_systemd_takes(nodes: Path, tmp_path: Path) -> None:
    assert launched(nodes, "--with", "systemd", "--out", str(tmp_path / "out")) == 0
    units = sorted((tmp_path / "out").iterdir())
    assert [unit.name for unit in units] == [f"millrace-{name}.service" for name in ("cpu-1", "gpu-1", "nats-1")]
    text = units[0].read_text()
    folder = tmp_path / "on-cpu-1/folder"
    script = f"{ROOT}/ops/launch/node.sh --venv {VENV}"
    assert f"ExecStart={script} --file {folder}/nodes.yaml --name cpu-1\n" in text
    assert "User=millrace\n" in text
    written = {unit.name: re.findall(r"^ReadWritePaths=(.*)$", unit.read_text(), re.MULTILINE) for unit in units}
    assert written["millrace-cpu-1.service"] == [f'"-{folder}"']
    assert written["millrace-nats-1.service"] == [f'"-{tmp_path}/on-nats-1/folder" "-{tmp_path}/on-nats-1/server"']
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not here to read them")
    done = subprocess.run([analyze, "verify", *units], capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_of_a_server_that_says_where_it_is_may_write_that_too(nodes: Path, tmp_path: Path) -> None:
    content = yaml.safe_load(nodes.read_text())
    nodes.write_text(yaml.safe_dump({**content, "url": "file:/etc/shared/server.json"}))
    assert launched(nodes, "--with", "systemd", "--out", str(tmp_path / "out")) == 0
    naming = {path.name for path in (tmp_path / "out").iterdir() if '"-/etc/shared"' in path.read_text()}
    assert naming == {"millrace-nats-1.service"}


def test_documented_servers_keep_their_data_where_data_belongs() -> None:
    texts = [ops.launch.node_file.__doc__ or "", *(page.read_text() for page in (ROOT / "docs").glob("*.md"))]
    folders = {found for text in texts for found in re.findall(r"^ *server: (/[^ \n]*)", text, re.MULTILINE)}
    assert folders == {"/var/lib/millrace/server", "/shared/mine/server"}


def test_batch_scripts_ask_for_gpus_and_are_scripts(nodes: Path, tmp_path: Path) -> None:
    assert launched(nodes, "--with", "slurm", "--out", str(tmp_path / "out"), "--no-setup") == 0
    scripts = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    for name in scripts:
        subprocess.run(["bash", "-n", tmp_path / "out" / name], check=True, timeout=HANGS_S)
    assert "#SBATCH --gpus=5\n" in scripts["gpu-1.sbatch"]
    assert "--gpus" not in scripts["cpu-1.sbatch"]
    assert "#SBATCH --nodelist=nats-1\n" in scripts["nats-1.sbatch"]
    asked = ["--account=lab", "--time=24:00:00", "--mem=2G", "--cpus-per-task=2"]
    assert [option for option in asked if f"#SBATCH {option}\n" not in scripts["nats-1.sbatch"]] == []
    assert "#SBATCH --mem=8G\n" in scripts["cpu-1.sbatch"]
    assert "#SBATCH --exclusive\n" in scripts["cpu-1.sbatch"]
    assert "--exclusive" not in scripts["nats-1.sbatch"]
    assert all("#SBATCH --signal=B:USR1@300\n" in text for text in scripts.values())
    assert scripts["cpu-1.sbatch"].splitlines()[-1].endswith("/node.sh --venv " + f"{VENV} --no-setup --file "
        f"{tmp_path}/on-cpu-1/folder/nodes.yaml --name cpu-1")  # fmt: skip


def test_what_nodes_need_is_put_on_the_disk_that_they_share(
    nodes: Path, cluster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = ("--with", "slurm", "--out", str(tmp_path / "out"), "--name", "cpu-1")
    assert launched(nodes, *launch, "--cluster", str(tmp_path / "none"), "--place") == 78
    assert "none/ca.pem is missing: write --cluster" in capsys.readouterr().err
    assert launched(nodes, *launch, "--cluster", str(cluster)) == 0
    said = capsys.readouterr().out
    assert f"  {cluster}/keys/mine/browser.seed -> {tmp_path}/on-cpu-1/keys/browser.seed\n" in said
    assert f"  sbatch {tmp_path}/out/cpu-1.sbatch\n" in said
    assert launched(nodes, *launch, "--cluster", str(cluster), "--place") == 0
    placed = {
        str(path.relative_to(tmp_path / "on-cpu-1")): path for path in (tmp_path / "on-cpu-1").rglob("*") if path.is_file()
    }
    assert set(placed) == {"folder/nodes.yaml", "folder/own.yaml", "ca_file", "keys/browser.seed"}
    assert {path.stat().st_mode & 0o777 for path in placed.values()} == {0o600}
    assert "->" not in capsys.readouterr().out


def test_a_server_that_says_where_it_is_may_be_anywhere(
    nodes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = yaml.safe_load(nodes.read_text())
    nodes.write_text(yaml.safe_dump({**content, "url": f"file:{tmp_path}/shared/server.json"}))
    assert launched(nodes, "--with", "slurm", "--out", str(tmp_path / "out")) == 0
    assert "--nodelist" not in (tmp_path / "out" / "nats-1.sbatch").read_text()
    assert launched(nodes, "--with", "kubernetes", "--out", str(tmp_path / "out")) == 78
    assert "write in url tls://NAME:4222" in capsys.readouterr().err


def test_manifests_hold_no_secret_and_what_each_role_needs(
    nodes: Path, cluster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert launched(nodes, "--with", "kubernetes", "--out", str(out), "--cluster", str(cluster), "--image", "mine:1") == 0
    text = (out / "millrace-mine.yaml").read_text()
    found = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text)}
    assert set(found) == {
        ("ConfigMap", "millrace-mine-recipe"),
        *(("NetworkPolicy", f"millrace-mine{of}") for of in ("", "-server", "-browser")),
        ("Service", "nats-1"),
        ("StatefulSet", "millrace-mine-server-nats-1"),
        ("Deployment", "millrace-mine-cpu-1-browser"),
        ("Deployment", "millrace-mine-gpu-1-policy"),
        ("PersistentVolumeClaim", "millrace-mine-gpu-1-trainer"),
        ("Deployment", "millrace-mine-gpu-1-trainer"),
    }
    assert found["ConfigMap", "millrace-mine-recipe"]["data"] == {"own.yaml": "defaults: [simulation, _self_]\n"}
    browser, policy, trainer = (
        found["Deployment", f"millrace-mine-{name}"]["spec"] for name in ("cpu-1-browser", "gpu-1-policy", "gpu-1-trainer")
    )
    assert [spec["replicas"] for spec in (browser, policy, trainer)] == [2, 2, 1]
    resources = [spec["template"]["spec"]["containers"][0]["resources"] for spec in (browser, policy, trainer)]
    assert resources[0] == {"requests": {"cpu": "3", "memory": "2824Mi"}, "limits": {"memory": "5648Mi"}}
    assert [each["limits"].get("nvidia.com/gpu") for each in resources] == [None, "2", "2"]
    (container,) = browser["template"]["spec"]["containers"]
    (*_, script) = container["command"]
    assert 'exec millrace browser --name "$POD" --run-dir ' in script
    assert " --config /given/recipe/own.yaml " in script
    assert script.endswith("env_config.server_size=9")
    assert subprocess.run(["sh", "-n", "-c", script], check=False, timeout=HANGS_S).returncode == 0
    given = browser["template"]["spec"]["volumes"][0]["secret"]
    assert json.loads((out / "millrace-chromium.json").read_text())["defaultAction"] == "SCMP_ACT_ALLOW"
    assert given == {"secretName": "millrace-mine-browser", "items": [{"key": "browser.seed", "path": "browser.seed"}]}
    assert "python -m ops.launch.ranks 2 -- millrace trainer" in str(trainer)
    printed = capsys.readouterr().out
    assert f"kubectl create secret generic millrace-mine-browser --from-file={cluster}/keys/mine/browser.seed" in printed
    assert "secret keys" not in text + printed


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(SSH)
    (folder / "ssh").chmod(0o755)
    log = tmp_path / "ssh.log"
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("SSH_LOG", str(log))
    yield log
    pid = tmp_path / "on-cpu-1/folder/node.pid"
    if pid.exists() and psutil.pid_exists(int(pid.read_text())):
        psutil.Process(int(pid.read_text())).kill()


def test_a_node_is_given_its_own_keys_only_started_once_and_stopped_over_ssh(
    nodes: Path, cluster: Path, ssh: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.launch.ssh._LIMIT_S", HANGS_S)
    monkeypatch.setattr("ops.launch.ssh._STOP_TRIES", 5 * int(HANGS_S))
    _roles_wait(nodes)
    over = ("--with", "ssh", "--name", "cpu-1", "--cluster", str(cluster), "--no-setup")
    assert launched(nodes, *over, "--dry-run") == 0
    assert not ssh.exists()
    assert "secret" not in capfd.readouterr().out
    assert launched(nodes, *over) == 0, capfd.readouterr().err
    assert set(ssh.read_text().split()) == {"me@cpu-1.lan"}
    there = tmp_path / "on-cpu-1"
    given = {path.relative_to(there): path for path in there.rglob("*") if path.name.endswith((".seed", ".pem", ".yaml"))}
    assert set(map(str, given)) == {"ca_file", "keys/browser.seed", "folder/nodes.yaml", "folder/own.yaml"} - {"ca_file"}
    assert (there / "ca_file").read_text() == "secret ca.pem"
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in (*given.values(), there / "ca_file"))
    process = psutil.Process(int((there / "folder/node.pid").read_text()))
    assert process.is_running()
    assert launched(nodes, *over) == 0
    assert "cpu-1 runs already" in capfd.readouterr().out
    assert launched(nodes, *over, "--stop") == 0
    assert "cpu-1 has left" in capfd.readouterr().out
    _wait_ended(process)
    assert launched(nodes, *over, "--drain") == 0
    assert "cpu-1 does not run" in capfd.readouterr().out


def _wait_ended(process: psutil.Process) -> None:
    """One that gave up its memory has left for everybody else, and is a moment later no more than what its parent may reap."""
    until = time.monotonic() + HANGS_S
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_nodes_are_given_the_prompt_file_that_the_recipe_names(
    nodes: Path, cluster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _own_prompt(nodes)
    file = read_node_file(nodes)
    node = file.node("gpu-1")
    write_private(cluster / "keys/mine/trainer.seed", b"secret")
    put = [step.shown for step in starting(file.of(node), node, cluster)]
    assert f"{tmp_path}/mine.txt -> {tmp_path}/on-gpu-1/folder/mine.txt" in put
    out = tmp_path / "out"
    assert launched(nodes, "--with", "kubernetes", "--out", str(out)) == 0
    maps = [each for each in yaml.safe_load_all((out / "millrace-mine.yaml").read_text()) if each["kind"] == "ConfigMap"]
    assert maps[0]["data"]["mine.txt"] == "$definition"
    capsys.readouterr()
    assert launched(nodes, "--with", "systemd", "--out", str(out)) == 0
    assert f"{nodes.parent}/mine.txt -> {tmp_path}/on-gpu-1/folder/mine.txt  (gpu-1)" in capsys.readouterr().out
    for elsewhere in ("/mine.txt", "../mine.txt", "./other.txt"):
        _own_prompt(nodes, elsewhere)
        with pytest.raises(ConfigurationError, match="put the file beside the recipe, and write"):
            _ = read_node_file(nodes).copied
    nodes.write_text(nodes.read_text().replace("env_config.server_size=9", "model_config.prompt_version=theirs.txt"))
    with pytest.raises(ConfigurationError, match="a worker's config names the prompt theirs"):
        _ = read_node_file(nodes).copied


def test_nodes_are_given_the_files_that_the_recipe_begins_with(nodes: Path, tmp_path: Path) -> None:
    folder = nodes.parent
    (folder / "own.yaml").write_text("defaults: [base, _self_]\nfeeder_config: {num_iterations: 3}\n")
    (folder / "base.yaml").write_text("defaults: [simulation, _self_]\nmodel_config: {prompt_version: mine.txt}\n")
    (folder / "mine.txt").write_text("$definition")
    assert [path.name for path in read_node_file(nodes).copied] == ["own.yaml", "mine.txt", "base.yaml"]
    (folder / "below").mkdir()
    (folder / "below/base.yaml").write_text("model_config: {prompt_version: mine.txt}\n")
    (folder / "own.yaml").write_text("defaults: [simulation, below/base@_here_, _self_]\n")
    with pytest.raises(ConfigurationError, match="which the recipe is made: put the file beside"):
        _ = read_node_file(nodes).copied


def test_a_step_that_fails_is_named_and_ends_the_start(
    nodes: Path, cluster: Path, ssh: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    over = ("--with", "ssh", "--name", "gpu-1", "--cluster", str(cluster))
    assert launched(nodes, *over) == 78
    assert "trainer.seed is missing: write --cluster" in capsys.readouterr().err
    (tmp_path / "on-cpu-1").write_text("in the way")
    assert launched(nodes, "--with", "ssh", "--name", "cpu-1", "--cluster", str(cluster)) == 78
    assert "me@cpu-1.lan, " in capsys.readouterr().err


def test_the_script_of_a_node_explains_itself_and_runs_the_command(nodes: Path) -> None:
    script = ROOT / "ops/launch/node.sh"
    told = subprocess.run([script, "--help"], capture_output=True, text=True, check=True, timeout=HANGS_S).stdout
    assert told.startswith("usage: node.sh")
    wrong = subprocess.run([script, "--fiel", "x"], capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert (wrong.returncode, wrong.stderr) == (78, "node.sh: there is no option --fiel (see --help)\n")
    extras = subprocess.run(
        [sys.executable, "-m", "ops.launch.extras", "--file", nodes, "--name", "cpu-1"],
        capture_output=True, text=True, check=True, timeout=HANGS_S, cwd=ROOT,
    )  # fmt: skip
    assert extras.stdout == "browser\n"
    run = [str(script), "--no-setup", "--venv", str(VENV), "--file", str(nodes), "--name", "nats-1"]
    ended = subprocess.run(run, capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert ended.returncode == 78
    assert "holds no nats.conf" in ended.stderr


def test_roles_without_a_gpu_need_no_torch() -> None:
    light = (Role.SERVER, Role.FEEDER, Role.BROWSER, Role.JUDGE, Role.ARCHIVER)
    assert extras_of(light, has_gpu=True) == ("archive", "browser", "feeder", "judge")
    assert extras_of((Role.POLICY, Role.TRAINER), has_gpu=False) == ("policy-cpu", "trainer")
    assert extras_of((Role.POLICY,), has_gpu=True) == ("policy",)


def test_a_node_that_is_drained_leaves_with_its_workers(nodes: Path, tmp_path: Path) -> None:
    _roles_wait(nodes)
    recipe = tmp_path / "on-cpu-1/folder/own.yaml"
    recipe.parent.mkdir(parents=True)
    shutil.copy(nodes.parent / "own.yaml", recipe)
    argv = millrace_command(["node", "--file", str(nodes), "--name", "cpu-1"])
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=millrace_environment(), cwd="/") as node:
        assert node.stdout is not None
        said = {node.stdout.readline() for _ in range(2)}
        node.send_signal(signal.SIGUSR1)
        assert node.wait(HANGS_S) == 0
        rest = node.stdout.read()
    assert said == {"cpu-1-browser-1 running\n", "cpu-1-browser-2 running\n"}
    assert {line.split()[1].removesuffix(":") for line in rest.splitlines()} <= {"running", "waiting", "finished", "stopped"}
