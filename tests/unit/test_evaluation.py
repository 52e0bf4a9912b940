"""What tries say about a model, by value; what is evaluated and how; and which evaluations may be compared."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console

from ops.analysis.evaluation.comparison import compare, require_alike
from ops.analysis.evaluation.counting import Counted, result_of
from ops.analysis.evaluation.display import sentence, show, show_comparison
from ops.analysis.evaluation.estimators import Tries, bootstrap, estimates, mcnemar, pass_all, pass_at
from ops.analysis.evaluation.plan import Plan, Request, begin, plan_of
from ops.analysis.evaluation.result import EvaluationResult, Model, read_result, write_result
from ops.analysis.evaluation.settings import differences, fingerprint, settings_of
from ops.analysis.report.episode import ReportedEpisode
from ops.analysis.report.report import Report
from ops.cli import main
from ops.config.loading import load_config
from ops.run.folder import RunFolder
from ops.run.models import checkpoint_folder, whole_model
from ops.simulation.material import ensure_task_file
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.env_config import DifficultySteps, EnvConfig
from schemas.errors import ConfigurationError
from schemas.ids import RunName
from schemas.judge_config import JudgeConfig, OpenAIConfig, Price
from schemas.messages import Outcome, Split, StageUsage, TokenUsage, Verdict
from schemas.policy_config import PolicyConfig
from tests import builders
from tests.support.runs.reported_world import judged, step

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


def model(folder: Path, text: str = "{}") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(text)
    return folder


def run_with_versions(tmp_path: Path) -> RunFolder:
    run, base = RunFolder(tmp_path / "run"), model(tmp_path / "base")
    ensure_task_file(tmp_path / "tests.jsonl", num_tasks=4)
    config = load_config("simulation", ["env_config.test_tasks=tests.jsonl", f"data_path={tmp_path}"])
    bus = BusConfig(run=RunName("r"), rubrics=("environment_v1", "rubric_v1"))
    policy = PolicyConfig(base_model=str(base), engine="simulated")
    run.create(dataclasses.replace(config, bus_config=bus, policy_config=policy), needed_bytes=0)
    model(run.checkpoints / "v000003-abc", '{"version": 3}')
    return run


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


def evaluated(verdicts: Mapping[str, Sequence[Verdict]]) -> EvaluationResult:
    config = Config(
        policy_config=PolicyConfig(engine="openai", base_model="m"),
        openai_config=OpenAIConfig(prices={"m": Price(input=2.0, output=10.0, cached_input=1.0)}),
        env_config=EnvConfig(test_tasks_repeat_times=max(map(len, verdicts.values()))),
    )
    plan = Plan(
        model=Model(name="m", kind="api"),
        folder=RunFolder(Path("out")),
        config=config,
        tasks_file=Path("tasks.jsonl"),
        tasks_sha256="x",
        recipe="default",
        num_tasks=len(verdicts),
        settings=settings_of(config, tasks_sha256="x", num_tasks=len(verdicts)),
    )
    counted = Counted(Report(source="s", run="r", rubric="environment_v1"))
    for name, given in verdicts.items():
        for verdict in given:
            counted.add(one := played(name, verdict))
            counted.pay(one.steps[0].request)
    return result_of(counted, plan)


def played(name: str, verdict: Verdict) -> ReportedEpisode:
    task = replace(builders.task(name, split=Split.EVAL), difficulty=5 if name == "b" else 1)
    outcome = Outcome.DONE if verdict in (Verdict.SUCCESS, Verdict.FAILURE) else Outcome.TIMED_OUT
    of = builders.trajectory(task, outcome=outcome, num_steps=1)
    seen = step(0, "u")
    request = replace(seen.request, usage=TokenUsage(prompt=1000, completion=100, cached=400))
    seen = dataclasses.replace(seen, request=request)
    usage = (StageUsage(stage="s", model="j", num_calls=2, cost=0.25),)
    given = judged(of, verdict, usage=usage)
    return ReportedEpisode(of, given, (given,), (seen,))


S, F, X = Verdict.SUCCESS, Verdict.FAILURE, Verdict.EXCLUDED


def test_the_figures_of_an_evaluation(tmp_path: Path) -> None:
    result = evaluated({"a": [S, F], "b": [S, S], "c": [F, X]})
    assert (result.num_episodes, result.num_successes, result.success) == (5, 3, 0.6)
    assert [result.low, result.high] == pytest.approx([0.2307, 0.8824], abs=1e-4)
    assert result.unscored == {"timed out": 1}
    assert result.tasks == {"a": Tries(1, 2), "b": Tries(2, 2), "c": Tries(0, 1)}
    assert [(one.k, one.value, one.num_tasks) for one in result.pass_at] == [(1, 0.5, 3), (2, 1.0, 2)]
    assert [one.value for one in result.pass_all] == [0.5, 0.5]
    assert (result.by_difficulty["easy"].num_successes, result.by_difficulty["medium"].num_successes) == (1, 2)
    assert (result.mean_steps, result.mean_prompt_tokens) == (1.0, 1000.0)
    assert result.costs.policy == pytest.approx(6 * (600 * 2 + 400 * 1 + 100 * 10) / 1e6)
    assert (result.costs.judge, result.costs.judge_calls) == (1.5, 12)
    assert sentence(result) == "success 0.600  95 % [0.231, 0.882]  3 of 5  m"
    write_result(tmp_path / "result.json", result)
    assert read_result(tmp_path) == result
    console = Console(record=True, width=120)
    show(result, console)
    assert "1: 1 timed out" in console.export_text()


def test_nothing_scored_is_no_success_and_no_failure() -> None:
    result = evaluated({"a": [X]})
    assert (result.success, result.low, result.pass_at[0].value) == (None, None, None)
    assert sentence(result).startswith("success –  95 % [0.000, 1.000]  0 of 0")


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
