"""What is changed in vain is said, and only then."""

import pytest

from ops.config.idle_keys import IDLE, idle_notes
from ops.config.key_docs import key_docs
from ops.config.schema import build_config, known_keys
from schemas.config import Config


def notes(**groups: object) -> list[str]:
    return [note.key for note in idle_notes(build_config(groups))]


@pytest.mark.parametrize(
    ("key", "value", "beside", "effective"),
    [
        ("env_config.completion_threshold", 0.5, {}, {"feeder_config": {"mode": "sync"}}),
        ("feeder_config.max_staleness", 4, {"mode": "sync"}, {}),
        (
            "env_config.difficulty_ratio",
            {"all": {"range": [1, 9], "weight": 1}},
            {},
            {"env_config": {"train_tasks_sampler": "ratio"}},
        ),
        ("env_config.deduplicate_across_iterations", False, {"train_tasks_sampler": "adaptive"}, {}),
        ("algorithm_config.recency_bias_power", 3, {}, None),
        ("env_config.use_rich_actree", True, {}, {"context_config": {"accessibility_tree": True}}),
        ("openai_config.timeout_s", 7, {}, {"judge_config": {"judge": "rubric_v1"}}),
        ("judge_config.max_evidence_screenshots", 7, {"judge": "webjudge_v1"}, {"judge_config": {"judge": "rubric_v1"}}),
        ("policy_config.base_url", "http://h/v1", {}, {"policy_config": {"engine": "openai"}}),
        ("policy_config.top_k", 7, {"engine": "openai"}, {}),
        ("log_config.run_name", "mine", {}, {"algorithm_config": {"report_to": "wandb"}}),
        ("feeder_config.max_concurrent", 7, {"mode": "eval"}, {}),
        ("browser_config.jpeg_quality", 7, {"screenshot_format": "png"}, {}),
        ("browser_config.cdp_token_env_var", "T", {}, {"browser_config": {"cdp_url": "http://127.0.0.1:9222"}}),
        (
            "browser_config.provider_lease_s",
            600,
            {},
            {"browser_config": {"provider": "browserbase"}, "env_config": {"task_timeout_minutes": 5}},
        ),
        ("browser_config.proxy_dns", "remote", {}, {"browser_config": {"proxies": ["http://h:1"]}}),
        ("browser_config.block_retries", 7, {}, {"browser_config": {"on_block": "other_identity", "proxies_file": "/p"}}),
        ("browser_config.block_hook_timeout_s", 7, {}, {"browser_config": {"on_block": "hook", "block_hook": "wait"}}),
        ("browser_config.site_wait_s", 7, {}, {"browser_config": {"site_limits": {"default": {"per_minute": 3}}}}),
        ("browser_config.network_max_entries", 7, {}, {"browser_config": {"record_network": True}}),
        ("judge_config.webarena_python", "/p", {}, {"judge_config": {"judge": "webarena_verified_v1"}}),
        ("bus_config.weights_kept", 7, {}, {"bus_config": {"weights": "bus"}}),
        ("algorithm_config.warmup_steps", 7, {"lr_scheduler_type": "constant"}, {}),
        ("simulation_config.mean_steps", 7, {}, {"browser_config": {"engine": "simulated"}}),
    ],
)
def test_a_key_is_noted_where_it_is_in_vain_and_nowhere_else(
    key: str, value: object, beside: dict[str, object], effective: dict[str, dict[str, object]] | None
) -> None:
    group, _, name = key.partition(".")
    assert notes(**{group: {**beside, name: value}}) == ([key] if effective is not None else [])
    if effective is not None:
        assert key not in notes(**{**effective, group: {**effective.get(group, {}), name: value}})


def test_the_replay_buffer_is_of_cloning() -> None:
    objective = {"adv_estimator": "grpo", "loss_type": "clipped", "group_size": 2}
    assert notes(algorithm_config={"recency_bias_power": 3}, objective_config=objective) == [
        "algorithm_config.recency_bias_power"
    ]


def test_the_weights_of_bands_are_of_their_sampler() -> None:
    weights = {"success_bands": {"low": 2.0}}
    assert notes(env_config=weights) == ["env_config.success_bands.low"]
    assert notes(env_config={**weights, "train_tasks_sampler": "success_bands"}) == []


def test_defaults_are_never_noted() -> None:
    assert idle_notes(Config()) == ()


def test_the_table_names_keys() -> None:
    for idle in IDLE:
        for key in idle.keys:
            assert key in known_keys() or key_docs()[key].is_group
