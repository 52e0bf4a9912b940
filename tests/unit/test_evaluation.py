"""What tries say about a model, by value; what is evaluated and how; and which evaluations may be compared."""

import dataclasses
import itertools
import json
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from rich.console import Console

from ops.analysis.evaluation.beginning import begin
from ops.analysis.evaluation.comparison import compare, require_alike
from ops.analysis.evaluation.counted_keys import ALL_THE_SAME, LEFT_OUT, changed, counted, counts
from ops.analysis.evaluation.display import sentences, show, show_comparison
from ops.analysis.evaluation.estimators import Tries, bootstrap, estimates, mcnemar, pass_all, pass_at
from ops.analysis.evaluation.plan import plan_of
from ops.analysis.evaluation.playing import training_of
from ops.analysis.evaluation.request import Request
from ops.analysis.evaluation.result import EvaluationResult, Group, read_result, write_result
from ops.analysis.evaluation.settings import differences, fingerprint, settings_of
from ops.cli import main
from ops.config.schema import build_config, known_keys
from ops.run.models import checkpoint_folder, whole_model
from ops.simulation.material import ensure_task_file
from schemas.config import Config
from schemas.env_config import DifficultySteps, EnvConfig
from schemas.errors import ConfigurationError
from schemas.judge_config import JudgeConfig
from schemas.policy_config import PolicyConfig
from tests.support.runs.evaluated_world import F, S, X, evaluated, model, run_with_versions

# estimators -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scored", [1, 3, 5])
def test_chances_are_those_over_all_choices_of_k_tries(scored: int) -> None:
    for successes in range(scored + 1):
        tries = [True] * successes + [False] * (scored - successes)
        for k in range(1, scored + 1):
            choices = list(itertools.combinations(tries, k))
            assert pass_at(Tries(successes, scored), k) == pytest.approx(sum(map(any, choices)) / len(choices))
            assert pass_all(Tries(successes, scored), k) == pytest.approx(sum(map(all, choices)) / len(choices))


def test_tasks_with_too_few_scored_tries_say_nothing_about_k() -> None:
    found = estimates([Tries(1, 2), Tries(0, 2), Tries(1, 1), Tries(0, 0)], most=3, seed=0)
    assert [one.num_tasks for one in found.pass_at] == [3, 2, 0]
    assert [one.value for one in found.pass_at] == [0.5, 0.5, None]
    assert [one.value for one in found.pass_all] == [0.5, 0.0, None]


def test_the_bootstrap_draws_whole_tasks_and_repeats_itself() -> None:
    values = [1.0] * 40 + [0.0] * 60
    low, high = bootstrap(values, seed=5)
    assert (low, high) == bootstrap(values, seed=5)
    assert bootstrap(values, seed=6) != (low, high)
    # The normal interval of a share of 0.4 among 100 is 0.304 to 0.496.
    assert [low, high] == pytest.approx([0.304, 0.496], abs=0.02)
    assert bootstrap([1.0] * 7, seed=0) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    # 2 * P(X <= min) of a fair coin; 5 and 15 of 20 are 0.0414 in tables of the sign test.
    [(0, 0, 1.0), (3, 3, 1.0), (0, 5, 0.0625), (15, 5, 0.0414), (1, 9, 0.0215)],
)
def test_mcnemar_is_the_sign_test_of_discordant_tasks(first: int, second: int, p: float) -> None:
    assert mcnemar(first, second) == pytest.approx(p, abs=1e-4)


# which model ------------------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_a_version_or_a_folder(tmp_path: Path) -> None:
    run = run_with_versions(tmp_path)
    third = run.checkpoints / "v000003-abc"
    assert checkpoint_folder(run, "0") == tmp_path / "base"
    assert checkpoint_folder(run, "3") == third
    assert checkpoint_folder(run, str(tmp_path / "base")) == tmp_path / "base"
    assert whole_model(run, third) == third
    with pytest.raises(ConfigurationError, match=r"kept \(0, 3\)"):
        checkpoint_folder(run, "2")


def test_an_evaluation_is_a_run_of_its_own_judged_by_its_own_judge(tmp_path: Path) -> None:
    run = run_with_versions(tmp_path)
    asked = Request(model="3", run_dir=run.path, repeat=5, seed=7, overrides=("judge_config.judge=rubric_v1",))
    plan = plan_of(asked)
    config = plan.config
    assert (config.feeder_config.mode, config.feeder_config.seed, plan.repeat) == ("eval", 7, 5)
    assert (plan.num_tasks, plan.num_episodes) == (4, 20)
    assert config.bus_config.rubrics == ("rubric_v1",)
    assert config.bus_config.run != "r", "its episodes are not the run's own"
    assert config.policy_config.base_model == str(run.checkpoints / "v000003-abc")
    assert plan.folder.path.parent == run.path / "evaluations"
    assert plan.folder.path.name.startswith("v000003-abc-")
    assert plan_of(asked).fingerprint == plan.fingerprint


def test_what_figures_depend_on_names_the_evaluation(tmp_path: Path) -> None:
    run = run_with_versions(tmp_path)
    asked = Request(model="3", run_dir=run.path)
    plans = [plan_of(asked)]
    model(run.checkpoints / "v000003-abc", '{"version": 4}')
    plans.append(plan_of(asked))
    (tmp_path / "tests.jsonl").unlink()
    ensure_task_file(tmp_path / "tests.jsonl", num_tasks=5)
    plans.append(plan_of(asked))
    assert len({plan.fingerprint for plan in plans}) == 3, "other weights and other tasks are other evaluations"
    config, last = Config(), plans[-1]

    def prints(repeat: int = 1, seed: int = 0, **groups: Any) -> str:
        settings = settings_of(dataclasses.replace(config, **groups), tasks_sha256="x", num_tasks=5)
        return fingerprint(last.model, settings, repeat=repeat, seed=seed)

    others = (
        prints(repeat=2),
        prints(seed=1),
        prints(policy_config=PolicyConfig(temperature=0.5)),
        prints(judge_config=JudgeConfig(label="x")),
        prints(env_config=EnvConfig(test_difficulty_max_steps=DifficultySteps(easy=1, medium=2, hard=3))),
    )
    assert len({prints(), *others}) == 6
    assert prints(env_config=EnvConfig(server_size=3)) == prints(), "how many browsers play is nothing to the figures"


def test_a_key_counts_unless_it_is_listed() -> None:
    known = known_keys()
    left_out = [out for out in LEFT_OUT if not any(key == out or key.startswith(f"{out}.") for key in known)]
    assert left_out == [], "each is a key or a group"
    assert set(ALL_THE_SAME) <= set(known)
    assert set(counted(Config())) == {key for key in known if counts(key)}
    assert changed(Config()) == {}
    for key in known:
        group = key.partition(".")[0]
        listed = {key, group, key.rpartition(".")[0]} & set(LEFT_OUT) and key not in ALL_THE_SAME
        assert counts(key) == (not listed)
    assert counts("browser_config.some_later_key")
    assert not counts("env_config.http_pools.some_later_pool")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("context_config: {history: thinking}", 'context_config.history (its default and "thinking")'),
        ("context_config: {max_calls: 5}", "context_config.max_calls (its default and 5)"),
        ("browser_config: {screenshot_format: png}", 'browser_config.screenshot_format (its default and "png")'),
        ("browser_config: {jpeg_quality: 5}", "browser_config.jpeg_quality (its default and 5)"),
        ("browser_config: {denied_hosts: [a.org]}", 'browser_config.denied_hosts (its default and ["a.org"])'),
        (
            "browser_config: {cdp_url: 'wss://b.org/?token=t'}",
            "browser_config.cdp_url (its default and sha256 28b129484f20)",
        ),
        ("env_config: {max_retries: 0}", "retries (2 and 0)"),
        ("env_config: {max_unparsed: 1}", "unparsed (0 and 1)"),
        ("env_config: {use_rich_actree: true}", "env_config.use_rich_actree (its default and true)"),
        ("env_config: {operation_timeout: 5}", "env_config.operation_timeout (its default and 5.0)"),
        ("judge_config: {max_evidence_screenshots: 1}", "judge_config.max_evidence_screenshots (its default and 1)"),
        ("judge_config: {max_blocking_screenshots: 1}", "judge_config.max_blocking_screenshots (its default and 1)"),
        ("judge_config: {judge: ./own.py:environment_v1}", 'judge_config.judge (its default and "./own.py:environment_v1")'),
        ("policy_config: {max_model_len: 8192}", "policy_config.max_model_len (its default and 8192)"),
        ("policy_config: {dtype: float32}", 'policy_config.dtype (its default and "float32")'),
        ("policy_config: {vllm_args: {x: fp8}}", 'policy_config.vllm_args (its default and {"x":"fp8"})'),
        ("algorithm_config: {cutoff_len: 8192}", "algorithm_config.cutoff_len (its default and 8192)"),
        ("openai_config: {base_url: 'https://o/v1'}", 'openai_config.base_url (its default and "https://o/v1")'),
        ("openai_config: {evaluation: {base_url: x}}", 'openai_config.evaluation.base_url (its default and "x")'),
        ("openai_config: {max_completion_tokens: 5}", "openai_config.max_completion_tokens (its default and 5)"),
        ("model_config: {model_type: qwen3-think}", 'model_config.model_type (its default and "qwen3-think")'),
    ],
)
def test_what_can_change_a_figure_is_told_by_its_key(said: str, told: str) -> None:
    one, other = (
        settings_of(config, tasks_sha256="x", num_tasks=5) for config in (Config(), build_config(yaml.safe_load(said)))
    )
    assert differences(one, other) == (told,)
    assert one["configuration"] != other["configuration"]


def test_a_folder_goes_on_with_its_own_evaluation_alone(tmp_path: Path) -> None:
    run = run_with_versions(tmp_path)
    out = tmp_path / "out"
    begin(plan_of(Request(model="3", run_dir=run.path, out=out)))
    begin(plan_of(Request(model="3", run_dir=run.path, out=out)))
    with pytest.raises(ConfigurationError, match=r"holds another evaluation .*: choose another --out"):
        begin(plan_of(Request(model="0", run_dir=run.path, out=out)))
    (out / "config.yaml").unlink()
    begin(plan_of(Request(model="3", run_dir=run.path, out=out)))
    assert (out / "config.yaml").exists(), "one that was killed while it began is begun"
    with pytest.raises(ConfigurationError, match="holds a run that is no evaluation"):
        begin(plan_of(Request(model="3", run_dir=run.path, out=run.path)))


def test_an_endpoint_has_to_have_a_key_and_a_private_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_with_versions(tmp_path)
    monkeypatch.setenv("MY_KEY", "secret-key")
    for url in ("http://example.org/v1", "https://key@example.org", "ftp://127.0.0.1", "http://127.0.0.1.example.org/v1"):
        with pytest.raises(ConfigurationError, match="has to be https"):
            plan_of(Request(api="m", base_url=url, key_env="MY_KEY", run_dir=run.path))
    plan = plan_of(Request(api="org/m", base_url="http://127.0.0.1:9/v1", key_env="MY_KEY", run_dir=run.path))
    policy = plan.config.policy_config
    assert (policy.engine, policy.base_model, policy.api_key_env_var) == ("openai", "org/m", "MY_KEY")
    assert plan.folder.path.name.startswith("org-m-")
    begin(plan)
    stored = b"".join(path.read_bytes() for path in plan.folder.path.rglob("*") if path.is_file())
    assert b"secret-key" not in stored
    with pytest.raises(ConfigurationError, match="OTHER_KEY is not set"):
        plan_of(Request(api="m", key_env="OTHER_KEY", run_dir=run.path))


# figures ----------------------------------------------------------------------------------------------------------------


def test_the_figures_of_an_evaluation(tmp_path: Path) -> None:
    result = evaluated({"a": [S, F], "b": [S, S], "c": [F, X]})
    assert (result.num_episodes, result.num_successes, result.success) == (5, 3, 0.6)
    assert [result.low, result.high] == pytest.approx([0.2307, 0.8824], abs=1e-4)
    assert (result.blocked, result.invalid) == ({}, {"timed out": 1})
    assert result.over_all is not None
    assert (result.over_all.count, result.over_all.number, result.over_all.value) == (3, 6, 0.5)
    assert [(one.value, one.num_tasks) for one in result.pass_at_over_all] == [(0.5, 3), (pytest.approx(2 / 3), 3)]
    assert result.tasks == {"a": Tries(1, 2), "b": Tries(2, 2), "c": Tries(0, 1)}
    assert [(one.k, one.value, one.num_tasks) for one in result.pass_at] == [(1, 0.5, 3), (2, 1.0, 2)]
    assert [one.value for one in result.pass_all] == [0.5, 0.5]
    assert (result.by_difficulty["easy"].num_successes, result.by_difficulty["medium"].num_successes) == (1, 2)
    assert (result.mean_steps, result.mean_prompt_tokens) == (1.0, 1000.0)
    assert result.costs.policy == pytest.approx(6 * (600 * 2 + 400 * 1 + 100 * 10) / 1e6)
    assert (result.costs.judge, result.costs.judge_calls) == (1.5, 12)
    said = sentences(result)
    assert said[:2] == (
        "success 0.600  95 % [0.231, 0.882]  3 of 5  m",
        "over all tasks 0.500  95 % [0.188, 0.812]  3 of 6  0 blocked  1 invalid",
    )
    assert result.protocol is not None
    assert said[3:] == (f"protocol p, sha256 {result.protocol.sha256}", "unlike where it was published: words")
    write_result(tmp_path / "result.json", result)
    assert read_result(tmp_path) == result
    console = Console(record=True, width=120)
    show(result, console)
    shown = console.export_text()
    assert re.search(r"blocked +0\b", shown)
    assert "1: 1 timed out" in shown


def test_results_tell_distributions_splits_and_what_is_in_the_training_tasks(tmp_path: Path) -> None:
    train = tmp_path / "train.jsonl"
    line = {"task_name": "click the button", "website": "demo:click_button?seed=1", "domain": "d", "subdomain": "s"}
    train.write_text(json.dumps(line | {"task_id": 1, "difficulty": 1, "evaluator_reference": [], "definite_answer": None}))
    group = Group(num_successes=1, num_scored=2, num_episodes=2)
    untold = evaluated({"a": [S, F]})
    assert (untold.by_distribution, untold.by_seen) == ({"unknown": group}, {})
    seen = evaluated({"a": [S, F]}, seen=training_of([train]))
    assert seen.by_seen == {"the task": group}
    told = replace(seen, by_distribution={"ood": group}, by_published_split={"hard": group}, trained_on=("train.jsonl",))
    write_result(tmp_path / "result.json", told)
    assert read_result(tmp_path) == told
    assert all(words in shown(told) for words in ("out (ood)", "hard", "the task", "train.jsonl"))
    assert "By distribution" not in shown(untold)


def shown(result: EvaluationResult) -> str:
    console = Console(record=True, width=120)
    show(result, console)
    return console.export_text()


def test_the_training_tasks_are_the_runs_or_those_that_are_named(tmp_path: Path) -> None:
    run = run_with_versions(tmp_path)
    asked = Request(model="3", run_dir=run.path, overrides=("env_config.train_tasks=train.jsonl",))
    assert plan_of(asked).trained_on == ()
    ensure_task_file(tmp_path / "train.jsonl", num_tasks=2)
    assert plan_of(asked).trained_on == (tmp_path / "train.jsonl",)
    other = ensure_task_file(tmp_path / "other.jsonl", num_tasks=2)
    assert plan_of(Request(model="3", run_dir=run.path, trained_on=(other,))).trained_on == (other,)
    with pytest.raises(ConfigurationError, match=r"--trained-on .*absent.jsonl is no file"):
        plan_of(Request(model="3", run_dir=run.path, trained_on=(tmp_path / "absent.jsonl",)))


def test_nothing_scored_is_no_success_and_no_failure() -> None:
    result = evaluated({"a": [X]})
    assert (result.success, result.low, result.pass_at[0].value) == (None, None, None)
    assert sentences(result)[0].startswith("success –  95 % [0.000, 1.000]  0 of 0")


# comparison -------------------------------------------------------------------------------------------------------------


def test_models_are_compared_task_by_task() -> None:
    first = evaluated({name: [S if name in "ab" else F] for name in "abcdefgh"} | {"x": [S]})
    second = evaluated({name: [S if name in "bcdefg" else F] for name in "abcdefgh"} | {"y": [F], "x": [X]})
    found = compare(first, second, seed=0)
    assert (found.num_tasks, found.value, found.only_first, found.only_second) == (8, 0.5, 1, 5)
    assert found.p_value == pytest.approx(0.21875)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.5 < found.high
    console = Console(record=True, width=160)
    show_comparison((first, second), [found], console)
    assert "+50.0 points" in console.export_text()


def test_tries_at_one_task_are_no_pairs_of_mcnemars() -> None:
    first, second = evaluated({"a": [S, F]}), evaluated({"a": [S, S]})
    found = compare(first, second, seed=0)
    assert (found.value, found.p_value, found.only_first) == (0.5, None, None)
    nothing = compare(evaluated({"a": [X]}), second, seed=0)
    assert (nothing.num_tasks, nothing.value) == (0, None)


def test_unlike_evaluations_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = evaluated({"a": [S]})
    warm = replace(first, settings={**first.settings, "temperature": 0.5})
    with pytest.raises(ConfigurationError, match=r"were not evaluated alike.*they differ in temperature \(1.0 and 0.5\)"):
        require_alike((first, first, warm))
    assert differences(first.settings, MappingProxyType(dict(first.settings))) == ()
    files = []
    for number, result in enumerate((first, warm, replace(first, repeat=1))):
        files.append(str(tmp_path / f"{number}.json"))
        write_result(Path(files[-1]), result)
    assert main(["eval", "--compare", files[0], files[1]]) == 78
    assert "temperature (1.0 and 0.5)" in capsys.readouterr().err
    assert main(["eval", "--compare", files[0], files[2]]) == 0
    assert "+0.0 points" in capsys.readouterr().out
