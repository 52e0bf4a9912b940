"""The configuration: committed files load, mistakes are answered with a sentence."""

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.config.agreement import require_agreement
from ops.config.loading import dump_config, load_config
from ops.config.recipes import RECIPES, objective_names, recipe_names
from ops.config.schema import build_config, known_keys
from schemas.algorithm_config import AlgorithmConfig
from schemas.config import Config
from schemas.env_config import DifficultyShare
from schemas.errors import ConfigurationError
from schemas.judge_config import Composite, Price
from trainer.estimators import num_members


def agreeing(overrides: list[str]) -> Config:
    """As whoever creates a run has it."""
    config = load_config("update_online", overrides)
    require_agreement(config)
    return config


@pytest.mark.parametrize("name", objective_names())
def test_every_recipe_can_be_combined_with_every_objective(name: str) -> None:
    for recipe in ("quickstart_policy_gradient", "update_online"):
        config = load_config(recipe, [f"objective={name}", "objective_config.entropy_coeff=0.5"])
        assert (config.objective_config.imitates, config.objective_config.entropy_coeff) == (name == "cloning", 0.5)
        require_agreement(config)


@pytest.mark.parametrize("recipe", recipe_names())
def test_the_keys_of_every_recipe_have_an_effect(recipe: str) -> None:
    require_agreement(load_config(recipe))


def test_an_objective_that_a_file_chose_can_be_chosen_again(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("defaults: [update_online, {objective: grpo}]\n")
    mine = tmp_path / "mine.yaml"
    mine.write_text("defaults: [team]\n")
    assert load_config(mine).objective_config.adv_estimator == "grpo"
    assert load_config(mine, ["objective=rloo"]).objective_config.adv_estimator == "rloo"


def test_an_unknown_objective_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigurationError, match="no objective 'gro': write one of bi_level_gae, cloning, gigpo, grpo"):
        load_config("update_online", ["objective=gro"])


@pytest.mark.parametrize("name", recipe_names())
def test_every_committed_file_loads(name: str) -> None:
    assert load_config(name) == load_config(RECIPES / f"{name}.yaml")


def test_committed_defaults_are_those_of_the_dataclasses() -> None:
    assert load_config("default") == Config()
    assert load_config("rollout") == Config()
    assert load_config("update_online") == Config(algorithm_config=AlgorithmConfig(val_split_ratio=0.05, report_to="wandb"))


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


def test_classes_of_difficulty_are_read_and_written(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    ratio = "difficulty_ratio: {easy: {range: [1, 3], weight: 2}, hard: {range: [4, 9], weight: 0.5}}"
    mine.write_text(f"defaults: [update_online]\nenv_config:\n  train_tasks_sampler: ratio\n  {ratio}\n")
    config = load_config(mine)
    assert config.env_config.difficulty_ratio == {
        "easy": DifficultyShare(range=(1, 3), weight=2.0),
        "hard": DifficultyShare(range=(4, 9), weight=0.5),
    }
    again = tmp_path / "again.yaml"
    again.write_text(dump_config(config))
    assert load_config(again) == config


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["env_config.train_tasks_sampler=ratio"], "without env_config.difficulty_ratio: write its classes"),
        (["env_config.difficulty_ratio={a: {range: [3, 1], weight: 1}}"], "write the lower difficulty first"),
        (["env_config.difficulty_ratio={a: {range: [1, 3], weight: 0}}"], "write a number above 0"),
        (["env_config.difficulty_ratio={a: {range: [1], weight: 1}}"], r"difficulty_ratio\.a\.range is \[1\]: write a list"),
        (["env_config.difficulty_ratio={a: {range: [1, 3]}}"], r"difficulty_ratio\.a has no weight"),
        (
            ["env_config.difficulty_ratio={a: {range: [1, 4], weight: 1}, b: {range: [4, 5], weight: 1}}"],
            "write every difficulty into one class at most",
        ),
        (
            ["objective=grpo", "env_config.train_tasks_rollout_size=100"],
            r"train_tasks_rollout_size is 100, which is no multiple of a group's 8 episodes .*: write 96",
        ),
        (["objective=grpo", "objective_config.max_refill=0.5"], r"max_refill is 0\.5: write 1"),
    ],
)
def test_what_cannot_be_played_is_refused(overrides: list[str], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        agreeing(overrides)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("algorithm_config.num_train_epochs=0", "num_train_epochs is 0: write a number above 0"),
        ("algorithm_config.gradient_accumulation_steps=0", "gradient_accumulation_steps is 0: write a number above 0"),
        ("algorithm_config.weight_decay=-1", "weight_decay is -1.0: write 0 or more"),
        ("algorithm_config.adam_beta2=1", "adam_beta2 is 1.0: write 0 to below 1"),
        ("objective_config.critic.learning_rate=0", "critic.learning_rate is 0.0: write a number above 0"),
        ("trainer_config.max_mismatch_k3=0", "max_mismatch_k3 is 0.0: write a number above 0"),
        ("trainer_config.stored_version=-2", "stored_version is -2: write a version, or -1"),
        ("trainer_config.seed=-1", "seed is -1: write 0 or more"),
        ("bus_config.episodes_max_age_s=-1", "episodes_max_age_s is -1.0: write 0 .for ever. or more"),
        ("bus_config.steps_max_age_s=0", "steps_max_age_s is 0.0: write 1 or more"),
        ("bus_config.heartbeats_max_age_s=2", "heartbeats_max_age_s is 2.0: write 5 or more"),
        ("feeder_config.audit_s=0", "audit_s is 0.0: write more than 0"),
        ("feeder_config.lease_s=0", "lease_s is 0.0: write more than 0"),
        ("bus_config.task_ack_wait_s=0", "task_ack_wait_s is 0.0: write more than 0"),
        ("bus_config.request_timeout_s=0", "request_timeout_s is 0.0: write more than 0"),
        ("browser_config.eval_share=7", "eval_share is 7.0: write 0 to 1"),
        ("browser_config.provider_lease_s=1", "provider_lease_s is 1: write 60 to 21600"),
        ("policy_config.temperature=0.001", "temperature is 0.001: write 0, or 0.01 or more"),
        ("policy_config.vllm_timeout=0", "vllm_timeout is 0.0: write a number above 0"),
        ("policy_config.gpu_memory_utilization=90", "gpu_memory_utilization is 90.0: write a number above 0 and at most 1"),
        ("objective_config.rejection_high=inf", "rejection_high is inf: write a finite number, up to 1e30 for no bound"),
        ("env_config.task_timeout_minutes=1e31", "minutes is 1e.31: write a finite number, up to 1e30 for no bound"),
        ("env_config.max_unparsed=9007199254740992", "max_unparsed is 9007199254740992: write 0 to 9007199254740991"),
        ("env_config.train_difficulty_max_steps.hard=10001", "env_config.train_.*.hard is 10001: write 1 to 10000"),
        ("env_config.test_difficulty_max_steps.easy=0", "env_config.test_.*.easy is 0: write 1 to 10000"),
        ("feeder_config.stages={long: {from_version: 1, max_steps: 10001}}", "max_steps is 10001: write 1 to 10000"),
        ("browser_config.site_limits={www.shop.example: {per_minute: 6}}", "write shop.example, which is its site"),
        ("browser_config.site_limits={Shop.example: {per_minute: 6}}", "write shop.example, which is its site"),
    ],
)
def test_a_number_out_of_range_is_answered_with_one_that_is_not(override: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        load_config("update_online", [override])


def test_every_number_has_its_range() -> None:
    """Below 0 a new key's number is refused by a sentence of its own, or the key stands here."""
    from_minus_1 = {"policy_config.top_k", "env_config.test_tasks_rollout_size", "trainer_config.stored_version"}
    numbers = {key: value for key, value in _leaves(Config()) if type(value) in (int, float)}
    assert len(numbers) > 200
    assert {key for key, value in numbers.items() if _is_taken(key, -1)} == from_minus_1
    assert not any(_is_taken(key, -2) for key in from_minus_1)
    floats = [key for key, value in numbers.items() if type(value) is float]
    assert not any(_is_taken(key, value) for key in floats for value in (math.inf, -math.inf, math.nan))


def _is_taken(key: str, value: object) -> bool:
    tree = value
    for part in reversed(key.split(".")):
        tree = {part: tree}
    assert isinstance(tree, dict)
    try:
        build_config(tree)
    except ConfigurationError:
        return False
    return True


def _leaves(component: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in vars(component).items():
        if dataclasses.is_dataclass(value):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            ["objective=cloning", "objective_config.kl_loss_coef=0.1"],
            "kl_loss_coef is 0.1, and has no effect",
        ),
        (["objective=cloning", "objective_config.kl_reward_coef=0.1"], "kl_reward_coef is 0.1, and has no effect"),
        (["objective=cloning", "objective_config.loss_agg_mode=seq-mean-token-sum"], "loss_agg_mode is seq-mean-token-sum"),
        (["objective=cloning", "objective_config.early_stop_imp_ratio=2"], "early_stop_imp_ratio is 2.0, and has no effect"),
        (
            ["objective=cloning", "objective_config.group_size=4", "objective_config.dynamic_sampling=drop"],
            "dynamic_sampling is drop, and has no effect where adv_estimator is none: leave it out, or write an estimator",
        ),
        (
            ["objective=grpo", "objective_config.gamma=0.9"],
            r"gamma is 0.9, .* write bi_level_gae, gae, gigpo, reinforce_plus_plus, reinforce_plus_plus_baseline or "
            r"reinforce_plus_plus_by_kind for",
        ),
        (
            ["objective=reinforce_plus_plus", "objective_config.lam=0.9"],
            "lam is 0.9, .* write bi_level_gae, gae or turn_gae for",
        ),
        (["objective=ppo", "objective_config.reference_model=/m"], "reference_model is '/m', and nothing is measured from it"),
    ],
)
def test_what_is_switched_on_takes_effect_or_is_refused(overrides: list[str], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        agreeing(overrides)


_OPENWEBRL = "context_config.actions=openwebrl"


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            [_OPENWEBRL, "context_config.interaction_mode=set_of_marks"],
            "write coordinates for context_config.interaction_mode",
        ),
        ([_OPENWEBRL, "feeder_config.demonstrate=true"], "up to 3 calls, .*max_calls leaves 1: write 3 or more"),
        (["context_config.max_calls=2"], "max_calls is 2, and the prompt vanilla asks for one call: write 1, or openwebrl"),
        (["context_config.max_calls=2", "model_config.prompt_version=complete"], "the prompt complete asks for one call"),
    ],
)
def test_how_is_asked_goes_with_what_is_read(overrides: list[str], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        load_config("update_online", overrides)


def test_several_calls_go_with_a_prompt_that_asks_for_them() -> None:
    several = ["context_config.max_calls=3", "model_config.prompt_version=openwebrl"]
    assert load_config("update_online", several).context_config.actions == "standard"
    assert load_config("update_online", [*several, _OPENWEBRL, "feeder_config.demonstrate=true"]).feeder_config.demonstrate
    assert load_config("update_online", [_OPENWEBRL]).context_config.max_calls == 1


def test_groups_do_not_bind_demonstrations_and_stored_episodes() -> None:
    uneven = ["objective=grpo", "env_config.train_tasks_rollout_size=100"]
    for alone in ("feeder_config.demonstrate=true", "feeder_config.mode=offline", "feeder_config.mode=eval"):
        assert num_members(agreeing([*uneven, alone]).objective_config) == 8
    remax = ["objective_config.adv_estimator=remax", "objective_config.loss_type=clipped", "objective_config.group_size=7"]
    assert num_members(agreeing(remax).objective_config) == 8


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


def test_tables_of_components_are_read_and_dumped(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("""
defaults: [default]
judge_config:
  judge: both_v1
  composites:
    both_v1: {combine: weighted, parts: {environment_v1: 1, rubric_v1: 3}, threshold: 0.7}
openai_config:
  prices:
    gemini-2.5-flash-lite: {input: 0.1, output: 0.4, cached_input: 0.025}
    plain: {input: 1, output: 2}
""")
    config = load_config(mine)
    parts = {"environment_v1": 1.0, "rubric_v1": 3.0}
    assert config.judge_config.composites == {"both_v1": Composite(combine="weighted", parts=parts, threshold=0.7)}
    assert config.openai_config.prices == {
        "gemini-2.5-flash-lite": Price(input=0.1, output=0.4, cached_input=0.025),
        "plain": Price(input=1.0, output=2.0),
    }
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
        ("policy_config.base_url=null", "policy_config.base_url is None: write text"),
        ("feeder_config.mode=asink", "feeder_config.mode is 'asink': write one of sync, async, offline, eval, rollout"),
        ("feeder_config=async", "feeder_config is 'async': it is a group, .* feeder_config.mode"),
        ("algorithm_config.filter_same_screenshot=1", "write true or false"),
        ("env_config.operation_timeout=0", "env_config.operation_timeout is 0: write a number above 0"),
        ("env_config.instance_lifetime_max=-1", "env_config.instance_lifetime_max is -1: write 0 or more"),
        ("env_config.max_retries=-1", "env_config.max_retries is -1: write 0 or more"),
        ("openai_config.model=''", "openai_config.model is empty: write the name of a model"),
        ("openai_config.temperature=-1", "openai_config.temperature is -1: write 0 or more, or null"),
        ("openai_config.patience_s=-1", "openai_config.patience_s is -1: write 0 or more"),
        ("openai_config.keypoint_detection=m", "it is a group, .* openai_config.keypoint_detection.model"),
        ("openai_config.structured_output=xml", "write one of auto, json_schema, json_object, text"),
        ("openai_config.prices=1", "openai_config.prices is 1: write a name for each entry"),
        (
            "openai_config.prices={m: 1}",
            r"openai_config.prices.m is 1: write its keys below it \(input, output, cached_input\)",
        ),
        ("openai_config.prices={m: {input: 1}}", "openai_config.prices.m has no output: write it"),
        ("openai_config.prices={m: {input: -1, output: 1}}", "openai_config.prices: input is -1: write 0 or more"),
        ("judge_config.num_votes=2", "judge_config.num_votes is 2: write 1, 3, 5"),
        ("judge_config.prompts=mine", "judge_config.prompts is set: write a judge_config.label"),
        ("browser_config.suites=mine.py", "browser_config.suites is 'mine.py': write a list"),
        ("judge_config.label=a.b", "judge_config.label"),
        ("judge_config.composites={a_v1: {parts: {}}}", "parts is empty"),
        ("judge_config.composites={a_v1: {parts: {b_v1: 0}}}", "the weight of b_v1 is 0: write a number above 0"),
        (
            "judge_config.composites={a_v1: {parts: [b_v1]}}",
            "composites.a_v1.parts is .'b_v1'.: write names, each with a number",
        ),
        (
            "judge_config.composites={a_v1: {combin: all, parts: {b_v1: 1}}}",
            "composites.a_v1.combin is .* did you mean combine",
        ),
        (
            "judge_config.composites={a_v1: {combine: al, parts: {b_v1: 1}}}",
            "a_v1.combine is 'al': write one of all, any, weighted",
        ),
        ("env_config.evaluation_workers=0", "env_config.evaluation_workers is 0: write a number above 0"),
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
