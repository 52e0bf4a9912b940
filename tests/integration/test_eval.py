"""An API model is evaluated through the real client, over a kill, and counted again without being asked anything; a checkpoint
through the real engine and browser by a protocol, with two seeds, and submitted without being played again."""

import json
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from agents.rendering import render_action
from bus.codec import decode
from ops.archive.opening import open_source
from ops.processes.role_process import millrace_command, millrace_environment
from ops.simulation.browser import Script
from ops.simulation.material import ensure_demo_task_file, ensure_task_file
from schemas.messages import Action, ActionKind, StepRequest
from schemas.simulation_config import SimulationConfig
from tests.support.agents import tiny_models
from tests.support.judging.endpoint_replies import Reply, says
from tests.support.judging.endpoint_requests import Asked
from tests.support.judging.scripted_endpoint import scripted_endpoint

pytestmark = [pytest.mark.anyio, pytest.mark.integration, pytest.mark.timeout(3600)]
NUM_TASKS, REPEAT = 5, 2
_KILLED = """
import os, signal, sys
from ops.cli import main
from ops.monitor.run_watch import RunState
left = int(sys.argv.pop(1))
original = RunState._judged
def counting(self, judgement, now, seq):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    original(self, judgement, now, seq)
RunState._judged = counting
sys.exit(main(sys.argv[1:]))
"""


def script(asked: Asked) -> Reply:
    assert asked.key == "sesame"
    return says(render_action(Action(kind=ActionKind.CLICK, point=(1.0, 2.0)), thought="Click."))


async def test_an_api_model_over_a_kill(tmp_path: Path) -> None:
    tasks, out = ensure_task_file(tmp_path / "test.jsonl", num_tasks=NUM_TASKS), tmp_path / "out"
    environment = millrace_environment() | {"SOME_KEY": "sesame"}
    async with scripted_endpoint(script) as endpoint:
        asked = ["eval", "--api", "some-model", "--base-url", endpoint.base_url, "--key-env", "SOME_KEY"]
        asked += ["--config", "simulation", "--tasks", str(tasks), "--repeat", str(REPEAT), "--out", str(out)]
        asked += ["openai_config.prices={some-model: {input: 2.0, output: 8.0, cached_input: 1.0}}"]
        asked += ["env_config.server_size=2", "simulation_config.mean_steps=2", "feeder_config.lease_s=2"]
        asked += ["env_config.max_retries=1000"]  # an episode that a slow machine stalls is played again
        program = [*millrace_command([])[:2], "-c", _KILLED, "3"]
        killed = await anyio.run_process([*program, *asked], env=environment, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
        assert not (out / "result.json").exists()

        done = await anyio.run_process(millrace_command(asked), env=environment, check=False)
        assert done.returncode == 0, done.stderr.decode()
        result = json.loads((out / "result.json").read_text())
        assert result["num_planned"] == result["num_episodes"] == NUM_TASKS * REPEAT
        num_asked = len(endpoint.requests)
        sampled = sum(request.usage.prompt_tokens for request in endpoint.requests)

        again = await anyio.run_process(millrace_command(asked), env=environment, check=False)
        assert again.returncode == 0, again.stderr.decode()
        assert json.loads((out / "result.json").read_text()) == result
        assert len(endpoint.requests) == num_asked, "what is complete is only counted"
    assert f"{result['num_successes']} of {NUM_TASKS * REPEAT}  some-model" in done.stdout.decode()
    await check(result, out, sampled)


async def check(result: dict[str, Any], out: Path, sampled: int) -> None:
    """Against what the simulated pages give, and a plain loop over the streams."""
    config = SimulationConfig(mean_steps=2.0)
    tasks = {f"test-{index:05d}": f"http://simulated.millrace.test/page?task=test-{index}" for index in range(NUM_TASKS)}
    wanted = {task: REPEAT * (Script.of(url, config).reward > 0) for task, url in tasks.items()}
    assert {task: tries[0] for task, tries in result["tasks"].items()} == wanted
    assert {task: tries[1] for task, tries in result["tasks"].items()} == dict.fromkeys(tasks, REPEAT)
    prompt = cached = completion = 0
    async with open_source(out, name="test") as opened:
        async for episode in opened.source.episodes():
            for record in episode.records:
                if ".act." in record.subject_suffix:
                    answer = decode(record.data)
                    assert isinstance(answer, StepRequest)
                    usage = answer.usage
                    assert usage is not None
                    prompt, cached, completion = prompt + usage.prompt, cached + usage.cached, completion + usage.completion
    costs = result["costs"]
    assert (costs["policy_prompt_tokens"], costs["policy_completion_tokens"]) == (prompt, completion)
    assert 0 < prompt <= sampled, "what was asked before the kill and never answered is not the episodes'"
    assert costs["policy"] == pytest.approx(((prompt - cached) * 2.0 + cached * 1.0 + completion * 8.0) / 1e6)
    assert "sesame" not in (out / "config.yaml").read_text()


_PROTOCOL = """
name: small
tasks: {file: demo.jsonl, first: 2}
seeds: [4, 7]
steps: 2
sampling: {temperature: 1.0, max_tokens: 8}
viewport: {width: 160, height: 210}
context: {screenshots: 1, tokens: 512}
judge: {name: environment_v1}
"""


async def test_a_protocol_over_the_real_engine_then_a_submission_without_playing(tmp_path: Path) -> None:
    model, out = tiny_models.build(tmp_path / "tiny", seed=1), tmp_path / "out"
    tasks = ensure_demo_task_file(tmp_path / "demo.jsonl", num_tasks=3)
    lines = [json.loads(line) | {"reference_length": 1} for line in tasks.read_text().splitlines()]
    tasks.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "small.yaml").write_text(_PROTOCOL)
    asked = ["eval", "small.yaml", str(model), "--out", str(out), "policy_config.dtype=float32", "env_config.server_size=2"]

    async def typed(*more: str) -> str:
        done = await anyio.run_process(
            millrace_command([*asked, *more]), cwd=tmp_path, env=millrace_environment(), check=False
        )
        assert done.returncode == 0, (done.stdout + done.stderr).decode()[-4000:]
        return done.stdout.decode()

    said = await typed()
    result = json.loads((out / "result.json").read_text())
    assert (result["seeds"], result["num_tasks"], result["num_planned"]) == ([4, 7], 2, 4)
    assert set(result["tasks"]) == {"demo-00000", "demo-00001"}
    ended = result["num_episodes"] + sum(result["blocked"].values()) + sum(result["invalid"].values())
    assert ended == result["over_all"]["number"] == 4
    for digest in (result["protocol"]["sha256"], result["model"]["sha256"]):
        assert digest in said
        assert digest in (out / "evaluation.html").read_text()
    for seed in (4, 7):
        stored = json.loads((out / f"seed-{seed}" / "evaluation.json").read_text())
        assert stored["protocol"]["sha256"] == result["protocol"]["sha256"]

    output = out / "seed-4" / "logs" / "policy-1.out"
    before = output.read_bytes()
    assert "a submission of 2 tasks" in await typed("--submission", str(tmp_path / "submission"))
    assert output.read_bytes() == before, "what is complete is only counted"
    assert json.loads((out / "result.json").read_text()) == result
    for task in result["tasks"]:
        submitted = json.loads((tmp_path / "submission" / task / "result.json").read_text())
        assert (submitted["schema_version"], submitted["reference_length"]) == ("online-mind2web-v2", 1)
        pictures = {step["screenshot"] for step in submitted["action_history"]}
        assert {path.name for path in (tmp_path / "submission" / task / "trajectory").iterdir()} == pictures
