"""The configuration: committed files load, mistakes are answered with a sentence."""

from pathlib import Path

import pytest

from ops.config_schema import known_keys
from ops.configuration import RECIPES, dump_config, load_config, recipe_names
from schemas.config import Config
from schemas.errors import ConfigurationError


@pytest.mark.parametrize("name", recipe_names())
def test_every_committed_file_loads(name: str) -> None:
    assert load_config(name) == load_config(RECIPES / f"{name}.yaml")


def test_committed_defaults_are_those_of_the_dataclasses() -> None:
    assert load_config("default") == Config()
    assert load_config("rollout") == Config()
    assert load_config("update_online") == Config()


def test_overrides_reach_nested_keys_and_keys_no_file_mentions() -> None:
    config = load_config(
        "rollout_test",
        [
            "env_config.test_difficulty_max_steps.easy=7",
            "trainer_config.seed=3",
            "policy_config.temperature=0",
            "save_path=/a b/c",
        ],
    )
    assert config.env_config.test_difficulty_max_steps.easy == 7
    assert config.env_config.test_difficulty_max_steps.hard == 70
    assert config.trainer_config.seed == 3
    assert config.policy_config.temperature == 0.0
    assert config.save_path == "/a b/c"
    assert config.feeder_config.mode == "eval"


def test_a_file_in_a_persons_own_folder_inherits_committed_recipes(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("defaults:\n  - rollout_train\npolicy_config: {top_k: 5}\n")
    mine = tmp_path / "mine.yaml"
    mine.write_text("defaults:\n  - team\nenv_config: {server_size: 3}\nbus_config: {run: '7'}\n")
    config = load_config(mine)
    assert (config.feeder_config.mode, config.policy_config.top_k, config.env_config.server_size) == ("rollout", 5, 3)
    assert config.bus_config.run == "7"


def test_a_dump_reads_back_equal(tmp_path: Path) -> None:
    config = load_config(
        "rollout_train", ["algorithm_config.learning_rate=3e-7", "env_config.train_difficulty_max_steps.hard=99"]
    )
    stored = tmp_path / "config.yaml"
    stored.write_text(dump_config(config))
    assert load_config(stored) == config


def test_every_key_can_be_named_on_the_command_line() -> None:
    assert "env_config.train_difficulty_max_steps.easy" in known_keys()
    config = load_config("default", [f"env_config.{key}=5" for key in ("server_size", "max_retries", "task_timeout_minutes")])
    assert (config.env_config.server_size, config.env_config.task_timeout_minutes) == (5, 5.0)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("policy_config.temprature=1", "policy_config.temprature is not a key .* did you mean policy_config.temperature"),
        ("temperature=1", "did you mean policy_config.temperature"),
        ("polcy_config.top_p=1", "did you mean policy_config.top_p"),
        ("env_config.learning_rate=1", "did you mean algorithm_config.learning_rate"),
        ("env_config.train_difficulty_max_steps.esay=1", "did you mean env_config.train_difficulty_max_steps.easy"),
        ("policy_config.top_k=lots", "policy_config.top_k is 'lots': write a whole number"),
        ("policy_config.top_k=1.5", "policy_config.top_k is 1.5: write a whole number"),
        ("policy_config.top_k=true", "policy_config.top_k is True: write a whole number"),
        ("policy_config.top_p=2", "policy_config.top_p is 2.0: write a number above 0 and at most 1"),
        ("policy_config.base_model=7", "policy_config.base_model is 7: write text"),
        ("policy_config.base_model=null", "policy_config.base_model is None: write text"),
        ("feeder_config.mode=asink", "feeder_config.mode is 'asink': write one of sync, async, offline, eval, rollout"),
        ("feeder_config=async", "feeder_config is 'async': it is a group, .* feeder_config.mode"),
        ("algorithm_config.filter_same_screenshot=1", "write true or false"),
        ("env_config.operation_timeout=0", "env_config.operation_timeout is 0: write a number above 0"),
        ("env_config.instance_lifetime_max=-1", "env_config.instance_lifetime_max is -1: write 0 or more"),
        ("env_config.max_retries=-1", "env_config.max_retries is -1: write 0 or more"),
        ("env_config.server_size", "cannot be read: write key=value"),
        ("save_path=a(b", "cannot be read: write key=value"),
        ("save_path='${nothing}'", "nothing"),
    ],
)
def test_a_mistake_is_named_with_what_to_write(override: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        load_config("default", [override])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("env_config: {server_size: 3\nx: :", "line"),
        ("defaults:\n  - nowhere\n", "nowhere"),
        ("- a\n- b\n", "mine"),
        ("typo_config: {a: 1}\n", "typo_config is not a key"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(text)
    with pytest.raises(ConfigurationError, match=sentence):
        load_config(mine)


def test_an_unknown_recipe_is_answered_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="did you mean update_online"):
        load_config("update_onlin")
    with pytest.raises(ConfigurationError, match="no configuration file"):
        load_config(tmp_path / "absent.yaml")
