"""docs/your_own_run.md, typed by a new user in an empty folder: a model of a hub, tasks, one command, an exported model."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
import yaml
from safetensors.torch import load_file

from ops.processes.role_process import millrace_command, millrace_environment
from tests.deadlines import HANGS_S
from tests.support.agents import tiny_models
from tests.support.agents.loopback_hub import COMMIT, LoopbackHub, loopback_hub
from tests.support.texts.documented_commands import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.integration, pytest.mark.timeout(3600)]
_PAGE = (ROOT / "docs" / "your_own_run.md").read_text()
_FIRST_PART = _PAGE.partition("## One GPU")[2].partition("## Eight GPUs")[0]
_FILES = {name: text for text, name in re.findall(r"^```yaml\n(# (\S+)\n.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)}
_SMALL = (
    # What two cores can do in a minute.
    "policy_config.max_new_tokens=8",
    "policy_config.max_model_len=512",
    "policy_config.dtype=float32",
    "browser_config.viewport_width=160",
    "browser_config.viewport_height=210",
    "env_config.server_size=4",
    "env_config.train_tasks_rollout_size=8",
    "env_config.test_tasks_rollout_size=2",
    "env_config.train_difficulty_max_steps={easy: 2, medium: 2, hard: 2}",
    "env_config.test_difficulty_max_steps={easy: 1, medium: 1, hard: 1}",
    "feeder_config.num_iterations=2",
    "algorithm_config.cutoff_len=512",
    "algorithm_config.learning_rate=1e-3",
    "algorithm_config.warmup_steps=0",
    "algorithm_config.deepspeed_config_filename=ds_config_cpu_zero1.json",
    # An untrained model earns nothing: what it learns from is the bonus.
    "objective_config.entropy_coeff=0.1",
    "objective_config.dynamic_sampling=off",
)


def commands(text: str) -> list[list[str]]:
    """Of the shell blocks, in their order."""
    lines = "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)).splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("millrace ")]


async def typed(words: list[str], folder: Path, environment: Mapping[str, str]) -> str:
    """What it printed."""
    with anyio.fail_after(3 * HANGS_S):
        done = await anyio.run_process(
            millrace_command(words), cwd=folder, env={**millrace_environment(), **environment}, check=False
        )
    printed = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, printed[-6000:]
    return printed


async def test_from_a_name_of_the_hub_to_an_exported_model(tmp_path: Path) -> None:
    folder, base = tmp_path / "mine", tiny_models.build(tmp_path / "tiny", seed=1)
    folder.mkdir()
    for name in ("mine.yaml", "nodes.yaml"):
        (folder / name).write_text(_FILES[name])
    named = yaml.safe_load(_FILES["mine.yaml"])["policy_config"]["base_model"]
    files = {file.name: file.read_bytes() for file in base.iterdir()}
    with loopback_hub(LoopbackHub(named, files)) as hub:
        environment = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        for words in commands(_FIRST_PART):
            small = _SMALL if words[0] == "run" else ()
            await typed([*words, *small], folder, environment) if words[0] != "doctor" else None

    stored = yaml.safe_load((folder / "runs" / "mine" / "config.yaml").read_text())
    assert stored["policy_config"]["base_model"] == f"{named}@{COMMIT}"
    trained, began = (load_file(each / "model.safetensors") for each in (folder / "models" / "mine", base))
    assert trained.keys() == began.keys()
    assert any(not trained[name].equal(began[name]) for name in began)
    assert "every admitted task has one trajectory and one judgement" in await typed(["audit", "runs/mine"], folder, {})


@pytest.mark.parametrize(
    ("number", "policies", "ranks"), [(0, ["2", "3", "4", "5", "6", "7"], "0,1"), (1, ["2,3", "4,5", "6,7"], "0,1")]
)
async def test_eight_gpus_are_divided_as_the_page_says(tmp_path: Path, number: int, policies: list[str], ranks: str) -> None:
    (tmp_path / "mine.yaml").write_text(_FILES["mine.yaml"])
    eight = commands(_PAGE.partition("## Eight GPUs")[2].partition("## Two nodes")[0])
    said = await typed([*eight[number], "--dry-run"], tmp_path, {"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7", "COLUMNS": "400"})
    cells = [[cell.strip() for cell in line.split("│")[1:3]] for line in said.splitlines() if line.startswith("│")]
    rows = {cell[0]: cell[1] for cell in cells}
    assert [gpus for name, gpus in rows.items() if name.startswith("policy-")] == policies
    assert rows["trainer-1"] == ranks
