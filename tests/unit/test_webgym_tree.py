"""WebGym's files load unchanged, and with its defaults: the tree in tests/fixtures/webgym_tree says what its own files say."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from judges.endpoint.addresses import resolve_addresses
from ops.config.loading import Loaded, load_config, loaded
from ops.config.resolved import resolve
from ops.config.translation import translated
from ops.config.webgym_keys import SAME_AS, SPLIT, WITHOUT_EFFECT
from schemas.errors import ConfigurationError
from tests.support.runs.webgym_reference import GEMINI, REFERENCE, TEST, TRAIN

TREE = Path(__file__).parents[1] / "fixtures" / "webgym_tree"


@cache
def of_tree(name: str) -> Loaded:
    return loaded(TREE / f"{name}.yaml")


@pytest.mark.parametrize(
    ("name", "mode", "judge"),
    [
        ("default", "async", "environment_v1"),
        ("rollout", "async", "rubric_v1"),
        ("rollout_train", "rollout", "rubric_v1"),
        ("rollout_test", "eval", "rubric_v1"),
        ("update_online", "async", "environment_v1"),
    ],
)
def test_every_file_loads_as_it_is(name: str, mode: str, judge: str) -> None:
    config = of_tree(name).config
    assert (config.feeder_config.mode, config.judge_config.judge) == (mode, judge)
    assert config.bus_config.rubrics == (judge,)
    assert config.model_config.prompt_version == "complete"
    assert (config.save_path, config.data_path) == ("runs/millrace", ".")
    assert (config.policy_config.base_model, config.policy_config.checkpoint_path) == ("", "")


def test_what_the_files_say_is_what_is_done() -> None:
    train, test, online = (of_tree(name).config for name in ("rollout_train", "rollout_test", "update_online"))
    assert (train.env_config.train_tasks_rollout_size, train.env_config.test_tasks_rollout_size) == (1024, 0)
    assert (test.env_config.train_tasks_rollout_size, test.env_config.test_tasks_rollout_size) == (0, -1)
    assert (train.policy_config.max_num_seqs, test.policy_config.max_num_seqs) == (128, 64)
    assert (train.env_config.http_pools.navigate, test.env_config.http_pools.navigate) == (128, 32)
    assert test.env_config.test_difficulty_max_steps.hard == 70
    assert online.algorithm_config.reporters == ("wandb",)
    assert online.algorithm_config.val_split_ratio == 0.05
    found = resolve_addresses(test.openai_config)
    assert {question: address.model for question, address in found.items()} == {
        "keypoint_detection": "gemini-2.5-flash-lite",
        "blocking_detection": "gemini-2.5-flash-lite",
        "evaluation": "gemini-3-flash-preview",
    }


def test_one_file_over_both_trains_on_what_it_collects(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    for file in TREE.glob("*.yaml"):
        (tmp_path / file.name).write_text(file.read_text())
    mine.write_text("defaults: [rollout_train, update_online]\nfeeder_config: {mode: sync}\n")
    found = loaded(mine, ["env_config.max_vllm_sessions=32", "env_config.vllm_timeout=60"])
    assert found.config.feeder_config.staleness_bound == 0
    assert (found.config.policy_config.max_num_seqs, found.config.policy_config.vllm_timeout) == (32, 60.0)
    assert load_config(mine, ["policy_config.max_num_seqs=16"]).policy_config.max_num_seqs == 16
    assert {note.key for note in found.notes} >= set(WITHOUT_EFFECT)


def _values(recipe: str) -> dict[str, object]:
    values = {key: value.value for key, value in resolve(recipe).values.items()}
    return values | {theirs: values[ours] for theirs, ours in SAME_AS.items()}


@pytest.mark.parametrize(("recipe", "differing"), [("rollout_train", TRAIN), ("rollout_test", TEST), ("update_online", {})])
def test_recipes_of_the_same_name_have_the_references_defaults(recipe: str, differing: Mapping[str, object]) -> None:
    values = _values(recipe)
    online = recipe == "update_online"
    for key, default in {**REFERENCE, **differing}.items():
        # The address is not written, so that another key's variable is never sent there; it is asked all the same.
        if key in WITHOUT_EFFECT or key in (SPLIT, "openai_config.base_url") or default is None:
            continue
        if online or not key.startswith("algorithm_config."):
            assert values[key] == default, key
    assert resolve_addresses(load_config(recipe).openai_config)["evaluation"].base_url == GEMINI


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        (
            {"env_config": {"vllm_timeout": 9}, "policy_config": {"vllm_timeout": 8}},
            "env_config.vllm_timeout is 9 and policy_config.vllm_timeout, which is the same here, is 8: write "
            "policy_config.vllm_timeout alone",
        ),
        (
            {"env_config": {"split": "test"}, "feeder_config": {"mode": "sync"}},
            "split is test and feeder_config.mode is sync: write eval",
        ),
        (
            {"env_config": {"split": "train"}, "feeder_config": {"mode": "eval"}},
            "split is train and feeder_config.mode is eval",
        ),
        ({"env_config": {"split": "dev"}}, "split is 'dev': write train or test"),
        (
            {"vllm_server_url": "http://gpu:9"},
            "vllm_server_url is 'http://gpu:9', and has no effect here: .* write openai for",
        ),
        ({"env_config": {"wait_timeout": True}}, "wait_timeout is True"),
    ],
)
def test_what_contradicts_itself_is_refused(tree: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        translated(tree)


def test_a_split_says_the_mode_unless_it_is_written() -> None:
    def mode(**tree: object) -> object:
        feeder = translated({"env_config": {"split": "train"}, **tree}).tree.get("feeder_config", {})
        assert isinstance(feeder, dict)
        return feeder.get("mode")

    assert mode() == "rollout"
    assert mode(algorithm_config={"learning_rate": 1.0}) is None
    assert mode(feeder_config={"mode": "offline"}) == "offline"


def test_a_written_tree_stays_as_it_was() -> None:
    written: dict[str, object] = {"env_config": {"split": "test", "wait_timeout": 2400, "vllm_timeout": 3}}
    translated(written)
    assert written == {"env_config": {"split": "test", "wait_timeout": 2400, "vllm_timeout": 3}}


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("env_config.host_ip=10.0.0.1", "env_config.host_ip is '10.0.0.1', and has no effect here: .* write bus_config.url"),
        ("vllm_server_url=http://gpu:9", "vllm_server_url is 'http://gpu:9'"),
        ("env_config.train_tasks_rollout_size=0", "train_tasks_rollout_size is 0 and feeder_config.mode is async: write a"),
        ("env_config.train_tasks=''", "train_tasks is empty and feeder_config.mode is async: write the name"),
        ("env_config.test_tasks_repeat_times=-1", "test_tasks_repeat_times is -1: write 0 or more"),
        ("env_config.test_tasks_rollout_size=-2", "test_tasks_rollout_size is -2: write a number of tasks, or -1"),
        ("algorithm.kl_ctrl.kl_coef=0.1", "is a key of verl, AgentFly and VAGEN: write objective_config.kl_reward_coef here"),
        ("algorithm_config.lr_scheduler_type=cosine", "lr_scheduler_steps is 0: write the optimizer steps until which"),
        (
            "algorithm_config.min_lr_ratio=0.1",
            "min_lr_ratio is 0.1, and has no effect where lr_scheduler_type is constant_with",
        ),
    ],
)
def test_an_override_is_refused_in_the_same_words(override: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        load_config("default", [override])


def test_nothing_is_evaluated_of_a_test_split_that_is_not_played() -> None:
    for override in ("env_config.test_tasks_repeat_times=0", "env_config.test_tasks_rollout_size=0"):
        with pytest.raises(
            ConfigurationError, match=r"feeder_config\.mode is eval, and of the test split nothing is to be played"
        ):
            load_config("rollout_test", [override])
    with pytest.raises(ConfigurationError, match="feeder_config asks for evaluations, and of the test split nothing"):
        load_config("update_online", ["feeder_config.eval_every=2", "env_config.test_tasks_rollout_size=0"])
    with pytest.raises(ConfigurationError, match=r"test_tasks is empty and feeder_config\.mode is eval"):
        load_config("rollout_test", ["env_config.test_tasks=''"])


def test_a_group_of_another_program_in_a_file_is_named(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("actor_rollout_ref: {actor: {optim: {lr: 1e-6}}}\n")
    with pytest.raises(
        ConfigurationError, match=r"actor_rollout_ref\.actor\.optim\.lr is a key of .*: write algorithm_config\.l"
    ):
        load_config(mine)
