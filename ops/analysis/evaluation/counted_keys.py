"""Says which keys of the configuration count among what an evaluation's figures depend on. Pure.

Invariant: a key counts unless it is listed here, so that one which is added later is never forgotten.
"""

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping

import msgspec

from schemas.config import Config

_SAID_BESIDE = (
    # Model, task file and its choice, repeats and seed stand in every result by themselves.
    "policy_config.engine",
    "policy_config.base_model",
    "policy_config.checkpoint_path",
    "policy_config.base_url",
    "env_config.test_tasks",
    "env_config.test_tasks_rollout_size",
    "env_config.test_tasks_repeat_times",
)
_OF_TRAINING = (
    # An evaluation trains nothing, in mode eval, and plays no training task.
    "algorithm_config",
    "objective_config",
    "trainer_config",
    "feeder_config",
    "env_config.train_tasks",
    "env_config.train_tasks_rollout_size",
    "env_config.train_tasks_sampler",
    "env_config.train_difficulty_max_steps",
    "env_config.success_bands",
    "env_config.difficulty_ratio",
    "env_config.deduplicate_across_iterations",
    "env_config.completion_threshold",
    "env_config.completion_grace_period",
    "browser_config.eval_share",
    "judge_config.shaping",
    "judge_config.blocklist_hours",
)
_PLACES = (
    # Where it runs, what it writes and who looks on.
    "save_path",
    "data_path",
    "bus_config",
    "log_config",
    "archive_config",
    "monitor_config",
    "env_config.verbose",
    "policy_config.api_key_env_var",
    "browser_config.cdp_token_env_var",
    "browser_config.provider_url",
    "browser_config.provider_key_env_var",
    "browser_config.provider_project",
    "judge_config.webarena_python",
)
_CAPACITY = (
    # How much is done at once, by what, and when something that is gone is replaced.
    "env_config.server_size",
    "env_config.evaluation_workers",
    "env_config.http_pools",
    "env_config.instance_lifetime_max",
    "policy_config.max_num_seqs",
    "policy_config.gpu_memory_utilization",
    "policy_config.history_mb",
    "browser_config.max_episodes",
    "browser_config.max_memory_mb",
    "browser_config.resend_s",
    "browser_config.provider_lease_s",
    "browser_config.provider_wait_s",
    "openai_config.max_concurrent",
)
_ACCOUNTS = (
    # What judging costs, and when it pauses for it: no verdict depends on either.
    "judge_config.max_calls",
    "judge_config.max_cost",
    "openai_config.prices",
)
LEFT_OUT = (*_SAID_BESIDE, *_OF_TRAINING, *_PLACES, *_CAPACITY, *_ACCOUNTS)
"""Keys, and whole groups."""
ALL_THE_SAME = ("algorithm_config.cutoff_len",)
"""Of groups that are left out: it bounds prompts."""

_PRIVATE = ("browser_config.cdp_url", "browser_config.cdp_urls", "browser_config.proxies")


def counts(key: str) -> bool:
    """Whether a key, in full, can change a figure."""
    return key in ALL_THE_SAME or not any(key == out or key.startswith(f"{out}.") for out in LEFT_OUT)


def counted(config: Config) -> dict[str, str]:
    """What every key that counts says, as JSON."""
    return {key: _written(value) for key, value in _leaves(config, "") if counts(key)}


def changed(config: Config) -> Mapping[str, str]:
    """Of the keys that count those that do not say what they say by default, as results show them."""
    return {key: _shown(key, said) for key, said in counted(config).items() if said != _DEFAULTS[key]}


def _shown(key: str, said: str) -> str:
    """Who publishes a result publishes no way into a browser."""
    return f"sha256 {hashlib.sha256(said.encode()).hexdigest()[:12]}" if key in _PRIVATE else said


def _leaves(component: object, prefix: str) -> Iterator[tuple[str, object]]:
    for each in dataclasses.fields(component):  # type: ignore[arg-type]
        value = getattr(component, each.name)
        if dataclasses.is_dataclass(value):
            yield from _leaves(value, f"{prefix}{each.name}.")
        else:
            yield prefix + each.name, value


def _written(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


_DEFAULTS = counted(Config())
