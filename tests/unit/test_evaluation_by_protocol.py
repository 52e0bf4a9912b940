"""Evaluations by a protocol: what is apart, several seeds as one, plans, runs on given servers, and the page."""

import dataclasses
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ops.analysis.evaluation.beginning import begin, begin_all
from ops.analysis.evaluation.causes import Cause, cause_of
from ops.analysis.evaluation.evaluating import gathered
from ops.analysis.evaluation.identity import identity_in
from ops.analysis.evaluation.page import page_of
from ops.analysis.evaluation.plan import evaluation_of, plan_of
from ops.analysis.evaluation.playing import awaited_roles
from ops.analysis.evaluation.protocol import Apart
from ops.analysis.evaluation.request import Request
from ops.analysis.evaluation.result import write_result
from ops.analysis.evaluation.settings import differences
from ops.analysis.evaluation.shares import merged, with_shares
from ops.analysis.report.episode import ReportedEpisode
from ops.cli import main
from schemas.env_config import DifficultySteps
from schemas.errors import ConfigurationError
from schemas.ids import WorkerId
from schemas.messages import Heartbeat, Outcome, Role, Verdict
from tests import builders
from tests.support.runs.evaluated_world import F, S, X, evaluated, run_with_versions
from tests.support.runs.reported_world import judged

# apart, and several seeds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "verdict", "blocked", "navigation_error", "cause"),
    [
        (Outcome.ANSWERED, S, False, "", None),
        (Outcome.ANSWERED, S, False, "net::ERR", None),
        (Outcome.STEP_LIMIT, F, False, "", None),
        (Outcome.ANSWERED, F, False, "net::ERR", "not_opened"),
        (Outcome.BLOCKED, X, True, "", "blocked"),
        (Outcome.ANSWERED, X, True, "", "blocked"),
        (Outcome.ANSWERED, X, False, "", "excluded"),
        (Outcome.TIMED_OUT, X, False, "", "timed_out"),
        (Outcome.FAILED, X, False, "", "failed"),
        (Outcome.CANCELLED, X, False, "", "cancelled"),
        (Outcome.ANSWERED, Verdict.ERROR, False, "", "judge_error"),
        (Outcome.ANSWERED, None, False, "", "unjudged"),
    ],
)
def test_what_became_of_an_episode_has_one_name(
    outcome: Outcome, verdict: Verdict | None, blocked: bool, navigation_error: str, cause: Cause | None
) -> None:
    of = replace(builders.trajectory(builders.task(), outcome=outcome), navigation_error=navigation_error)
    assert cause_of(ReportedEpisode(of, None if verdict is None else judged(of, verdict, blocked=blocked))) == cause


def test_a_protocol_says_what_is_apart_and_what_is_a_failure() -> None:
    strict = evaluated({"a": [S], "b": [X]}, apart=Apart(blocked=(), invalid=()))
    assert (strict.num_episodes, strict.success, strict.invalid) == (2, 0.5, {})
    lenient = evaluated({"a": [S], "b": [X]}, apart=Apart(blocked=("timed_out",), invalid=()))
    assert (lenient.num_episodes, lenient.blocked, lenient.invalid) == (1, {"timed out": 1}, {})
    assert [result.over_all and result.over_all.value for result in (strict, lenient)] == [0.5, 0.5]


def test_what_was_never_played_to_an_end_is_a_failure_over_all() -> None:
    result = evaluated({"a": [S, S]}, num_tasks=2)
    assert result.invalid == {"never played to an end": 2}
    assert (result.success, result.over_all and result.over_all.value) == (1.0, 0.5)
    assert [one.value for one in result.pass_at_over_all] == [0.5, 0.5]


_VERDICTS = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.sampled_from([S, F, X]), min_size=2, max_size=2), min_size=1
)


@settings(max_examples=25)
@given(seeds=st.lists(_VERDICTS, min_size=1, max_size=3))
def test_seeds_together_are_all_of_their_tries(seeds: list[dict[str, list[Verdict]]]) -> None:
    one_by_one = [evaluated(verdicts, seed=number, num_tasks=6) for number, verdicts in enumerate(seeds)]
    together = merged(one_by_one)
    tries = [verdict for verdicts in seeds for each in verdicts.values() for verdict in each]
    assert (together.num_successes, together.num_episodes) == (tries.count(S), len(tries) - tries.count(X))
    assert together.num_planned == 12 * len(seeds)
    assert sum(together.invalid.values()) == together.num_planned - together.num_episodes
    assert together.over_all is not None
    assert together.over_all.value == pytest.approx(tries.count(S) / together.num_planned)
    assert [group.num_episodes for group in together.by_seed.values()] == [12] * len(seeds)
    assert sum(each.scored for each in together.tasks.values()) == together.num_episodes
    assert together.costs.judge == pytest.approx(0.25 * len(tries))
    assert merged(one_by_one[:1]) == one_by_one[0]
    assert with_shares(together) == together


def test_what_was_never_played_weighs_in_no_mean() -> None:
    one = replace(evaluated({"a": [S]}, seed=0, num_tasks=10), mean_steps=10.0, mean_seconds=None)
    ten = replace(evaluated({name: [S] for name in "abcdefghij"}, seed=1, num_tasks=10), mean_steps=1.0, mean_seconds=3.0)
    together = merged([one, ten])
    assert together.mean_steps == pytest.approx(20 / 11)
    assert together.mean_seconds == 3.0
    apart = replace(evaluated({"a": [X, S]}, seed=2), mean_steps=4.0)
    assert merged([apart, one]).mean_steps == pytest.approx((2 * 4 + 10) / 3), "what is blocked or invalid was played"


def test_the_page_of_an_evaluation_says_by_what_it_was_measured_and_what_is_apart() -> None:
    results = [evaluated({"a": [S, F], "b": [S, X], "<i>": [F, F]}, seed=seed) for seed in (0, 1)]
    page = page_of(merged(results))
    assert results[0].protocol is not None
    for said in (results[0].protocol.sha256, "words", "sha256 x", "over all tasks", "2 timed out", "By seed", "&lt;i&gt;"):
        assert said in page
    assert "<i>" not in page.partition("<style>")[2].partition("</style>")[2].replace("<i style=", "")
    assert page.count("<svg") == 2, "success by seed and by difficulty"
    assert "src=" not in page
    assert "No protocol" not in page
    assert "By no protocol" in page_of(replace(results[0], protocol=None))


# plans by a protocol ------------------------------------------------------------------------------------------------------


def protocol_file(folder: Path, text: str = "") -> str:
    path = folder / "mine.yaml"
    path.write_text(f"name: mine\ntasks: {{file: tests.jsonl, first: 3}}\njudge: {{name: environment_v1}}\n{text}")
    return str(path)


def test_a_protocol_says_how_a_model_is_evaluated(tmp_path: Path) -> None:
    run = run_with_versions(tmp_path)
    said = protocol_file(tmp_path, "repeats: 2\nsteps: 7\nsampling: {temperature: 0.6, top_k: 20}\ncontext: {screenshots: 1}")
    plan = plan_of(Request(protocol=said, model="3", run_dir=run.path))
    config = plan.config
    assert (plan.num_tasks, plan.repeat, config.feeder_config.mode) == (3, 2, "eval")
    assert (config.policy_config.temperature, config.policy_config.top_k, config.context_config.num_rounds) == (0.6, 20, 0)
    assert config.env_config.test_difficulty_max_steps == DifficultySteps(easy=7, medium=7, hard=7)
    assert plan.stamp is not None
    assert (plan.stamp.name, plan.settings["max_steps"]) == ("mine", "7/7/7")
    begin(plan)
    assert identity_in(plan.folder.path) == plan.identity
    played = Path(config.env_config.test_tasks)
    assert played.parent == plan.folder.tasks
    assert played.read_bytes().splitlines() == (tmp_path / "tests.jsonl").read_bytes().splitlines()[:3]


@pytest.mark.parametrize("by_protocol", [False, True])
def test_what_a_command_line_adds_shows_in_settings_and_name(by_protocol: bool, tmp_path: Path) -> None:
    run = run_with_versions(tmp_path)
    said = protocol_file(tmp_path) if by_protocol else ""
    asked = partial(Request, protocol=said, model="3", run_dir=run.path)
    plain, other = plan_of(asked()), plan_of(asked(overrides=("browser_config.jpeg_quality=5", "env_config.server_size=3")))
    assert plain.fingerprint != other.fingerprint
    assert differences(plain.settings, other.settings) == ("browser_config.jpeg_quality (its default and 5)",)
    stored = run.load()
    run.store(dataclasses.replace(stored, env_config=dataclasses.replace(stored.env_config, use_rich_actree=True)))
    [told] = differences(plain.settings, plan_of(asked()).settings)
    assert told == "env_config.use_rich_actree (its default and true)", "and so does what the recipe says"
    begin(plain)
    with pytest.raises(ConfigurationError, match="holds another evaluation"):
        begin(plan_of(asked(out=plain.folder.path)))


def test_a_judge_that_asks_a_model_has_to_be_told_which(tmp_path: Path) -> None:
    run, said = run_with_versions(tmp_path), tmp_path / "mine.yaml"
    composite = "configuration: {judge_config.composites: {both: {parts: {environment_v1: 1, rubric_v1: 1}}}}"
    for judge, further, asking in (
        ("webjudge_v1", "", "webjudge_v1"),
        ("both", composite, "rubric_v1"),
        ("rubric_v1, model: m", "", ""),
        ("both, model: m", composite, ""),
    ):
        said.write_text(f"name: mine\ntasks: {{file: tests.jsonl}}\njudge: {{name: {judge}}}\n{further}")
        asked = Request(protocol=str(said), model="3", run_dir=run.path)
        if asking:
            with pytest.raises(ConfigurationError, match=rf"mine\.yaml: judge\.model is empty, and {asking} asks one"):
                plan_of(asked)
        else:
            assert plan_of(asked).settings["judge_model"] == "m"


def test_a_prompt_of_ones_own_counts_by_what_it_says(tmp_path: Path) -> None:
    run, prompt = run_with_versions(tmp_path), tmp_path / "prompt.txt"
    asked = Request(protocol=protocol_file(tmp_path, f"prompt: {prompt}"), model="3", run_dir=run.path)
    prompt.write_text("one $definition")
    before = plan_of(asked)
    prompt.write_text("other $definition")
    assert before.fingerprint != plan_of(asked).fingerprint
    prompt.unlink()
    with pytest.raises(ConfigurationError, match=r"prompt\.txt cannot be read"):
        plan_of(asked)


def test_nothing_else_may_say_what_a_protocol_says(tmp_path: Path) -> None:
    run, said = run_with_versions(tmp_path), protocol_file(tmp_path, "seeds: [4, 5]")
    asked = partial(Request, protocol=said, model="3", run_dir=run.path)
    with pytest.raises(ConfigurationError, match=r"policy_config\.top_p is what the protocol says as sampling\.top_p"):
        plan_of(asked(overrides=("policy_config.top_p=0.5",)))
    with pytest.raises(ConfigurationError, match="--repeat is what the protocol says as repeats"):
        plan_of(asked(repeat=2))
    with pytest.raises(ConfigurationError, match="--seed 3 is none of the protocol's seeds: write one of 4, 5"):
        plan_of(asked(seed=3))
    assert plan_of(asked(seed=5, overrides=("env_config.server_size=3",))).seed == 5
    with pytest.raises(ConfigurationError, match=r"judge_config\.judge is 'nobodys_v1'.* write one of"):
        plan_of(replace_judge(asked(), tmp_path))


def replace_judge(asked: Request, folder: Path) -> Request:
    path = folder / "other.yaml"
    path.write_text(Path(asked.protocol).read_text().replace("environment_v1", "nobodys_v1"))
    return dataclasses.replace(asked, protocol=str(path))


def test_each_seed_is_a_run_of_its_own_in_one_folder(tmp_path: Path) -> None:
    run, said, out = run_with_versions(tmp_path), protocol_file(tmp_path, "seeds: [4, 5]"), tmp_path / "out"
    asked = Request(protocol=said, model="3", run_dir=run.path, out=out)
    both = evaluation_of(asked)
    assert [(plan.seed, plan.folder.path) for plan in both.plans] == [(4, out / "seed-4"), (5, out / "seed-5")]
    assert len({plan.config.bus_config.run for plan in both.plans}) == 2
    begin_all(both)
    one = evaluation_of(dataclasses.replace(asked, seed=5))
    assert [plan.fingerprint for plan in one.plans] == [both.plans[1].fingerprint]
    begin_all(one)
    for seed, verdict in ((5, S), (4, F)):
        found = evaluated({"a": [verdict]}, seed=seed)
        write_result(both.folder_of(seed).result, found)
        result, left = gathered(both)
        assert (result.seeds, left) == (((5,), (4,)) if seed == 5 else ((4, 5), ()))
    assert (result.num_successes, result.num_episodes) == (1, 2)
    (out / "config.yaml").write_text("{}")
    with pytest.raises(ConfigurationError, match="holds a run: choose another --out"):
        begin_all(both)


def test_an_evaluation_on_given_servers_is_a_run_there(tmp_path: Path) -> None:
    run = run_with_versions(tmp_path)
    url, asked = "tls://nats-1.example.org:4222", partial(Request, model="3", run_dir=run.path)
    overrides = (
        f"bus_config.url='{url}'",
        "bus_config.run=measured",
        f"bus_config.keys={tmp_path}/keys",
        "bus_config.replicas=3",
    )
    plan = plan_of(asked(overrides=overrides))
    bus = plan.config.bus_config
    assert plan.is_on_servers
    assert (bus.url, bus.run, bus.keys, bus.replicas) == (url, "measured", f"{tmp_path}/keys", 3)
    assert plan_of(asked()).fingerprint == plan.fingerprint, "where it is played is nothing to the figures"
    with pytest.raises(ConfigurationError, match=r"bus_config\.run is r, the run whose model is evaluated"):
        plan_of(asked(overrides=(*overrides, "bus_config.run=r")))
    seeds = asked(protocol=protocol_file(tmp_path, "seeds: [4, 5]"), overrides=overrides)
    with pytest.raises(ConfigurationError, match="on given servers each is a run of its own"):
        evaluation_of(seeds)
    assert [each.seed for each in evaluation_of(dataclasses.replace(seeds, seed=5)).plans] == [5]
    said = protocol_file(tmp_path, f"configuration: {{bus_config.url: '{url}', bus_config.run: measured}}")
    assert plan_of(asked(protocol=said)).config.bus_config.run == "measured"


def test_the_servers_of_a_run_are_not_those_of_its_evaluation(tmp_path: Path) -> None:
    run = run_with_versions(tmp_path)
    stored = run.load()
    run.store(dataclasses.replace(stored, bus_config=dataclasses.replace(stored.bus_config, url="nats://127.0.0.1:1")))
    assert not plan_of(Request(model="3", run_dir=run.path)).is_on_servers


def test_roles_that_nobody_has_are_named() -> None:
    beats = [Heartbeat(worker=WorkerId("w"), role=role, state="waiting", at=0.0) for role in (Role.JUDGE, Role.FEEDER)]
    assert awaited_roles(beats) == ("browser", "policy")
    assert awaited_roles([]) == ("browser", "policy", "judge")


def test_the_words_of_the_command_line_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["webgym-test", "a", "b"], "unrecognized arguments: b"),
        (["p.yaml", "4", "--api", "m"], "write one of MODEL, --api NAME and --compare RESULT"),
        (["p.yaml", "--compare", "x"], "--compare takes results alone: leave PROTOCOL out"),
        (["--compare", "x", "y", "--tasks", "t"], "--compare takes results alone: leave --tasks out"),
        (
            ["--repeat", "2", "--seed", "1", "policy_config.top_p=1", "--compare", "x", "y"],
            "leave KEY=VALUE, --repeat, --seed out",
        ),
    ):
        with pytest.raises(SystemExit):
            main(["eval", *words])
        assert said in capsys.readouterr().err
    assert main(["eval", "p.yaml", "models/none", "policy_config.dtype=float32"]) == 78
    assert "the protocol p.yaml cannot be read (No such file or directory)" in capsys.readouterr().err
