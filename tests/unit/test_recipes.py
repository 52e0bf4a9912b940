"""The committed recipes say what was published, and each can be the beginning of a run."""

from functools import cache

import pytest

from judges.endpoint.addresses import resolve_addresses
from ops.config.loading import load_config, loaded
from ops.config.recipes import RECIPES, recipe_names
from schemas.config import Config

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
