"""The committed recipes say what was published, and each can be the beginning of a run."""

import re
from functools import cache
from pathlib import Path

import pytest

from judges.endpoint.addresses import resolve_addresses
from ops.config.loading import load_config, loaded
from ops.config.recipes import RECIPES, objective_names, recipe_names
from schemas.config import Config
from trainer.feeding.stragglers import StragglerClock

config_of = cache(load_config)


def test_webgym_as_published() -> None:
    config = config_of("webgym")
    assert config.feeder_config.staleness_bound == 0
    policy, algorithm, env = config.policy_config, config.algorithm_config, config.env_config
    assert (policy.temperature, policy.top_p, policy.top_k, policy.min_p, policy.max_new_tokens) == (1, 0.99, 2, 0, 3072)
    assert config.context_config.num_rounds == 4
    assert config.model_config.prompt_version == "complete"
    assert (env.train_tasks_rollout_size, env.completion_threshold, env.completion_grace_period) == (1024, 0.95, 30)
    assert (env.train_difficulty_max_steps.hard, env.test_difficulty_max_steps.hard) == (30, 70)
    assert config.objective_config.imitates
    assert (algorithm.positive_samples_to_train, algorithm.recency_bias_power, algorithm.replay_iterations) == (1800, 2, 4)
    assert (algorithm.learning_rate, algorithm.weight_decay, algorithm.max_grad_norm) == (1e-6, 0.01, 1.0)
    assert (algorithm.num_train_epochs, algorithm.warmup_steps, algorithm.cutoff_len) == (2, 30, 16384)
    assert (algorithm.per_device_train_batch_size, algorithm.gradient_accumulation_steps) == (3, 4)
    assert algorithm.filter_same_screenshot
    assert algorithm.reporters == ("wandb",)
    assert config.bus_config.rubrics == ("rubric_v1",)
    assert resolve_addresses(config.openai_config)["evaluation"].model == "gemini-3-flash-preview"


def test_async_webrl_as_published() -> None:
    config = config_of("async_webrl")
    objective, algorithm, feeder = config.objective_config, config.algorithm_config, config.feeder_config
    assert (feeder.mode, feeder.max_staleness, feeder.max_concurrent) == ("async", 2, 1280)
    assert (objective.adv_estimator, objective.group_size, objective.dynamic_sampling) == ("grpo", 8, "refill")
    assert (objective.length_normaliser, objective.length_constant) == ("constant", 10)
    assert (objective.loss_type, objective.behaviour_weight_cap, objective.clip_ratio_c) == ("decoupled", 5, 3)
    assert (objective.clip_ratio_low, objective.clip_ratio_high) == (0.2, 0.2)
    assert not objective.needs_reference
    assert config.env_config.train_tasks_rollout_size == 128
    assert (algorithm.learning_rate, algorithm.num_train_epochs, algorithm.max_tokens_per_micro_batch) == (5e-6, 3, 16384)
    assert (algorithm.lr_scheduler_type, algorithm.min_lr_ratio) == ("cosine", 0.1)
    policy = config.policy_config
    assert (policy.max_new_tokens, policy.max_model_len, policy.temperature, policy.top_p) == (4096, 16384, 1, 1)
    assert policy.top_k <= 0, "nothing is cut off"
    found = resolve_addresses(config.openai_config)
    assert {address.model for address in found.values()} == {"gemini-2.5-flash"}


@pytest.mark.parametrize("objective", objective_names())
def test_a_policy_gradient_samples_from_the_whole_distribution(objective: str) -> None:
    """WebGym's two likeliest tokens are for cloning; what a person writes counts."""
    policy = load_config("default", [f"objective={objective}"]).policy_config
    cut = (2, 0.99) if objective == "cloning" else (-1, 1.0)
    assert (policy.top_k, policy.top_p) == cut
    chosen = load_config("default", [f"objective={objective}", "policy_config.top_k=7"]).policy_config
    assert (chosen.top_k, chosen.top_p) == (7, cut[1])


def test_evaluation_of_an_api_model() -> None:
    config = config_of("evaluate_api", ("policy_config.base_model=gpt-4o-mini",))
    assert (config.feeder_config.mode, config.policy_config.engine) == ("eval", "openai")
    assert config.bus_config.rubrics == ("rubric_v1",)
    assert config.env_config.test_tasks_rollout_size == -1


def test_offline() -> None:
    config = config_of("offline")
    assert config.feeder_config.staleness_bound is None
    assert not config.feeder_config.tests
    assert (config.bus_config.episodes_max_age_s, config.bus_config.results_max_age_s) == (0, 0)


@pytest.mark.parametrize("name", ["quickstart", "simulation"])
def test_what_runs_everywhere_reports_to_nobody(name: str) -> None:
    assert config_of(name).algorithm_config.reporters == ()


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_says_what_it_is_and_nothing_in_vain(name: str) -> None:
    assert (RECIPES / f"{name}.yaml").read_text().startswith("# ")
    found = loaded(name)
    assert isinstance(found.config, Config)
    assert found.notes == ()


_PAGE = Path(__file__).parents[2] / "docs" / "published_recipes.md"
_ROW = re.compile(r"^\|[^|]*\|[^|]*\| `([a-z_]+_config\.[a-z_.]+)` \| (\S[^|]*?) \|$", re.MULTILINE)


def _rows(recipe: str) -> list[tuple[str, str]]:
    """Keys and what is said to stand there; a value in backticks is a choice, not the recipe's own."""
    section = {"openwebrl": "OpenWebRL", "async_webrl": "AsyncWebRL", "webgym": "WebGym"}[recipe]
    text = _PAGE.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [(key, said) for key, said in _ROW.findall(text) if not said.startswith("`")]


@pytest.mark.parametrize("recipe", ["openwebrl", "async_webrl", "webgym"])
def test_the_page_says_what_the_recipe_has(recipe: str) -> None:
    rows = _rows(recipe)
    assert len(rows) > 15
    for key, said in rows:
        value: object = config_of(recipe)
        for name in key.split("."):
            value = getattr(value, name)
        shown = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        assert re.match(rf"{re.escape(shown)}(?![\w.])", said), (key, said, shown)


@pytest.mark.parametrize("name", recipe_names())
def test_a_group_that_is_compared_keeps_its_longest_members(name: str) -> None:
    """WebGym cancels the last episodes of a batch; it imitates, and compares nothing."""
    config = config_of(name)
    compares = not config.objective_config.imitates and config.feeder_config.mode == "sync"
    clock = StragglerClock(config.env_config)
    size = config.env_config.train_tasks_rollout_size
    assert not (compares and (clock.due(size - 1, 0.0) or clock.due(size - 1, 1e9)))


@pytest.mark.parametrize(
    ("recipe", "keys"),
    [
        (
            "openwebrl",
            "browser_config.viewport_width browser_config.viewport_height policy_config.top_k policy_config.top_p "
            "objective_config.clip_ratio_low objective_config.clip_ratio_high objective_config.clip_ratio_c "
            "objective_config.kl_loss_coef objective_config.kl_reward_coef objective_config.entropy_coeff",
        ),
        ("async_webrl", "objective_config.clip_ratio_low objective_config.clip_ratio_high objective_config.clip_ratio_c"),
    ],
)
def test_a_row_of_several_values_has_a_key_for_each(recipe: str, keys: str) -> None:
    assert set(keys.split()) <= {key for key, _ in _rows(recipe)}


def test_openwebrl_in_two_stages() -> None:
    config = config_of("openwebrl")
    feeder, rate = config.feeder_config, config.algorithm_config.learning_rate
    assert [feeder.max_steps(version) for version in (0, 89, 90, 139)] == [None, None, 30, 30]
    assert [feeder.learning_rate(version) or rate for version in (0, 89, 90, 139)] == [1e-6, 1e-6, 5e-7, 5e-7]
    assert config.algorithm_config.lr_scheduler_type == "constant"
