"""Each published recipe from its file to two versions: pages of the shop and of MiniWoB++ in Chromium, vLLM, DeepSpeed, and a
judge whose endpoint is scripted. The model says a few sentences at random, so that episodes end in different ways."""

import json
import random
from pathlib import Path
from typing import Any

import anyio
import pytest
from safetensors.torch import load_file

from agents.action_space import ActionSpace
from agents.prompts import system_prompt
from agents.rendering import render_action
from ops.config.loading import load_config
from ops.processes.role_process import millrace_command, millrace_environment
from schemas.messages import Action, ActionKind
from tests.support.agents.talkative_model import build_talkative
from tests.support.judging.asked_judge import hoped_for, kind_of
from tests.support.judging.endpoint_replies import Reply, verdict
from tests.support.judging.endpoint_requests import Asked
from tests.support.judging.scripted_endpoint import Script, scripted_endpoint
from tests.support.sft.conversations import THINKING_TEMPLATE, light_page, raw_row, write_lines

pytestmark = [pytest.mark.anyio, pytest.mark.integration, pytest.mark.timeout(3600)]
_ACTIONS = (
    Action(kind=ActionKind.SCROLL, amount=0.5),
    Action(kind=ActionKind.GO_BACK),
    Action(kind=ActionKind.ANSWER, text="It is ready."),
)
_SMALL = (
    # What two cores can do in a minute; the rest is the recipe's.
    "policy_config.max_new_tokens=6",
    "policy_config.max_model_len=1024",
    "policy_config.dtype=float32",
    "policy_config.max_num_seqs=8",
    "browser_config.viewport_width=160",
    "browser_config.viewport_height=210",
    "env_config.server_size=4",
    "env_config.test_tasks_rollout_size=2",
    "env_config.train_difficulty_max_steps={easy: 3, medium: 3, hard: 3}",
    "env_config.test_difficulty_max_steps={easy: 1, medium: 1, hard: 1}",
    "feeder_config.num_iterations=2",
    "feeder_config.eval_every=0",
    "algorithm_config.cutoff_len=1024",
    "algorithm_config.learning_rate=1e-3",
    "algorithm_config.deepspeed_config_filename=ds_config_cpu_zero1.json",
    "algorithm_config.report_to=none",
    "bus_config.weights=path",
)
_OWN = {
    "openwebrl": (
        "env_config.train_tasks_rollout_size=10",
        "feeder_config.stages={long: {from_version: 1, max_steps: 2, learning_rate: 5.0e-4}}",
    ),
    "async_webrl": ("env_config.train_tasks_rollout_size=16", "algorithm_config.warmup_steps=0"),
    "webgym": ("env_config.train_tasks_rollout_size=16", "algorithm_config.warmup_steps=0"),
}


async def _done(words: list[str], folder: Path) -> str:
    """What it printed."""
    environment = {**millrace_environment(), "SCRIPTED_KEY": "none"}
    done = await anyio.run_process(millrace_command(words), cwd=folder, env=environment, check=False)
    printed = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, printed[-6000:]
    return printed


async def _write_tasks(folder: Path) -> None:
    """Two of the shop, two of MiniWoB++."""
    await _done(["tasks", "shop", "--difficulty", "easy", "--out", "shop.jsonl"], folder)
    await _done(["tasks", "miniwob", "--pages", "click-test,click-button", "--seeds", "0:1", "--out", "pages.jsonl"], folder)
    lines = (folder / "shop.jsonl").read_text().splitlines()[:2] + (folder / "pages.jsonl").read_text().splitlines()
    for name in ("train.jsonl", "test.jsonl"):
        (folder / name).write_text("\n".join(lines) + "\n")


def _model(recipe: str, folder: Path) -> Path:
    config = load_config(recipe)
    space, model = ActionSpace.of(config.context_config), config.model_config
    return build_talkative(folder, _sentences(recipe), [system_prompt(model.prompt_version, space)])


def _sentences(recipe: str) -> list[str]:
    config = load_config(recipe)
    space, model = ActionSpace.of(config.context_config), config.model_config
    offered = [action for action in _ACTIONS if recipe == "openwebrl" or action.amount == 1.0]
    offered += [] if recipe == "openwebrl" else [Action(kind=ActionKind.SCROLL)]
    return [render_action(action, thought="Go on.", model=model, space=space) for action in offered]


def _thinking_model(folder: Path) -> Path:
    """It says the same, but its template opens the thought; shown in system prompts, so that both are short."""
    space = ActionSpace.of(load_config("openwebrl").context_config)
    sentences = [sentence.removeprefix("<think>\n") for sentence in _sentences("openwebrl")]
    build_talkative(folder, sentences, ["<think>\n", system_prompt("openwebrl", space)])
    (folder / "chat_template.jinja").write_text(THINKING_TEMPLATE)
    return folder


def _answered_rows(tasks: Path) -> list[dict[str, Any]]:
    """Each of four tasks answered eight times, behind the recipe's own prompt and above screenshots as light as its pages: a
    model so small knows nothing of others."""
    answer = _sentences("openwebrl")[-1]
    system = system_prompt("openwebrl", ActionSpace.of(load_config("openwebrl").context_config))
    asked = [json.loads(line)["task_name"] for line in tasks.read_text().splitlines()]

    def row(number: int) -> dict[str, Any]:
        intent, screenshot = asked[number % len(asked)], light_page(number)
        return raw_row(answer, task=f"t{number}", intent=intent, system=system, screenshot=screenshot)

    return [row(number) for number in range(32)]


def _version(run: Path, number: int) -> Path:
    (folder,) = (run / "checkpoints").glob(f"v{number:06d}-*")
    return folder


def _judge() -> Script:
    """Three in four questions about evidence hold."""
    draw = random.Random(5)

    def script(asked: Asked) -> Reply:
        if kind_of(asked) == "evaluation" and draw.random() < 0.25:
            failed = "NOT SUCCESS" if "NOT SUCCESS" in asked.text else "FAILURE"
            return verdict(reasoning="it is not so", verdict=failed)
        return hoped_for(asked)

    return script


async def _learn(recipe: str, base: Path, folder: Path, judge: str) -> list[dict[str, Any]]:
    """Plays and trains two versions in `folder / "run"`: the metrics of each."""
    settings = (
        f"data_path={folder}",
        f"policy_config.base_model={base}",
        f"openai_config.base_url={judge}",
        "openai_config.openai_api_key_env_var=SCRIPTED_KEY",
        *_SMALL,
        *_OWN[recipe],
    )
    await _done(["run", recipe, "--run-dir", "run", *settings], folder)
    rows = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) == 2
    return rows


async def _runs_to_its_end(recipe: str, base: Path, folder: Path) -> list[dict[str, Any]]:
    """The metrics of its two versions, which were judged and learnt from: the second from all that has succeeded by then."""
    async with scripted_endpoint(_judge()) as endpoint:
        rows = await _learn(recipe, base, folder, endpoint.base_url)
        num_asked = len(endpoint.requests)
    assert rows[-1]["samples"] > 0
    assert rows[-1]["learning_rate"] > 0
    assert num_asked > 4
    final, began = (load_file(each / "model.safetensors") for each in (_version(folder / "run", 2), base))
    assert any(not final[name].equal(began[name]) for name in began)
    assert "every admitted task has one trajectory and one judgement" in await _done(["audit", "run"], folder)
    return rows


@pytest.mark.parametrize("recipe", [recipe for recipe in _OWN if recipe != "openwebrl"])
async def test_a_recipe_runs_from_its_file_to_its_end(recipe: str, tmp_path: Path) -> None:
    await _write_tasks(tmp_path)
    await _runs_to_its_end(recipe, _model(recipe, tmp_path / "base"), tmp_path)


async def test_openwebrl_runs_to_its_end_from_its_warm_start(tmp_path: Path) -> None:
    """docs/sft.md's path: its rows imitated, the model exported, and its recipe from there. The rows answer at once, which the
    model did once in four times; so do the episodes that reward then trains on."""
    await _write_tasks(tmp_path)
    base = _thinking_model(tmp_path / "base")
    write_lines(tmp_path / "rows.jsonl", _answered_rows(tmp_path / "train.jsonl"))
    imitation = (
        f"policy_config.base_model={base}",
        "algorithm_config.learning_rate=0.003",
        "algorithm_config.gradient_accumulation_steps=1",
        "algorithm_config.per_device_train_batch_size=2",
        "algorithm_config.deepspeed_config_filename=ds_config_cpu_zero1.json",
    )
    source = ("rows.jsonl", "--from", "openai", "--screenshots", "1")
    said = await _done(["sft", *source, "--run-dir", "sft", "--config", "openwebrl_sft", *imitation], tmp_path)
    assert "32 conversations with 32 answers" in said
    await _done(["export-model", "sft", "--out", "warm"], tmp_path)

    rows = await _runs_to_its_end("openwebrl", tmp_path / "warm", tmp_path)
    assert rows[0]["episode_steps"] <= 1.2
    assert rows[0]["parse_rate"] >= 0.8
