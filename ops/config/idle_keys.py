"""Keys that a configuration changes and that have no effect beside its other keys. Pure: a configuration in, notes out.

Where a contradiction would train on something else than was meant, `schemas` refuses it; here nothing is wrong, only in vain.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from ops.config.idle import Idle
from ops.config.idle_objective_keys import IDLE_OF_OBJECTIVE
from ops.config.translation import Note
from schemas.config import Config
from schemas.extensions import JUDGES

_WEBARENA = "webarena_verified_v1"


def _asks_no_model(config: Config) -> bool:
    judge = config.judge_config.judge
    return judge in JUDGES.builtin and not JUDGES.find(judge).traits.asks_models


def _fixes_its_screenshots(config: Config) -> bool:
    judge = config.judge_config.judge
    return judge in JUDGES.builtin and judge != "rubric_v1"


def _runs_no_webarena(config: Config) -> bool:
    judge = config.judge_config
    return _WEBARENA not in (judge.judge, *(part for each in judge.composites.values() for part in each.parts))


def _told_to_nobody(config: Config) -> bool:
    return "wandb" not in config.algorithm_config.reporters


def _plays_no_training(config: Config) -> bool:
    return not config.feeder_config.trains


_ENV, _POLICY, _ALGORITHM, _BUS = "env_config.", "policy_config.", "algorithm_config.", "bus_config."
IDLE = (
    Idle(
        (_ENV + "completion_threshold", _ENV + "completion_grace_period"),
        lambda config: config.feeder_config.mode != "sync",
        "only a batch of mode sync waits for its last episodes",
    ),
    Idle(
        ("feeder_config.max_staleness",),
        lambda config: config.feeder_config.mode != "async",
        "only mode async plays ahead of the trainer by so much",
    ),
    Idle(
        (_ENV + "difficulty_ratio",),
        lambda config: config.env_config.train_tasks_sampler != "ratio",
        "only env_config.train_tasks_sampler=ratio draws by it",
    ),
    Idle(
        (_ENV + "success_bands",),
        lambda config: config.env_config.train_tasks_sampler != "success_bands",
        "only env_config.train_tasks_sampler=success_bands draws by it",
    ),
    Idle(
        (_ENV + "deduplicate_across_iterations",),
        lambda config: config.env_config.train_tasks_sampler in ("adaptive", "frontier", "success_bands"),
        "env_config.train_tasks_sampler goes by what became of a task",
    ),
    Idle(
        tuple(
            _ALGORITHM + name
            for name in (
                "positive_samples_to_train",
                "recency_bias_power",
                "replay_iterations",
                "replay_balance",
                "replay_capacity",
                "val_split_ratio",
                "val_max_steps",
                "min_answer_probability",
                "filter_same_screenshot",
            )
        ),
        lambda config: not config.objective_config.imitates,
        "objective_config.adv_estimator trains on every scored episode once, from no replay buffer",
    ),
    Idle(
        (_ENV + "use_rich_actree",),
        lambda config: not config.context_config.accessibility_tree,
        "no accessibility tree is shown without context_config.accessibility_tree",
    ),
    Idle(
        ("openai_config",),
        _asks_no_model,
        "judge_config.judge asks no model",
    ),
    Idle(
        ("judge_config.max_evidence_screenshots", "judge_config.max_blocking_screenshots"),
        _fixes_its_screenshots,
        "only rubric_v1 shows as many screenshots as it is told to",
    ),
    Idle(
        (_POLICY + "base_url", _POLICY + "api_key_env_var"),
        lambda config: config.policy_config.engine != "openai",
        "only policy_config.engine=openai asks an endpoint",
    ),
    Idle(
        (_POLICY + "vllm_args",),
        lambda config: config.policy_config.engine != "vllm",
        "only policy_config.engine=vllm starts an engine",
    ),
    Idle(
        tuple(
            _POLICY + name
            for name in ("checkpoint_path", "top_k", "min_p", "max_model_len", "dtype", "gpu_memory_utilization")
        ),
        lambda config: config.policy_config.engine == "openai",
        "an endpoint samples in its own way and is not told",
    ),
    Idle(
        tuple(f"log_config.{name}" for name in ("run_name", "wandb_mode", "project_name", "entity_name", "wandb_key_env_var")),
        _told_to_nobody,
        "algorithm_config.report_to has no wandb",
    ),
    Idle(
        (_ENV + "train_tasks_sampler", _ENV + "train_difficulty_max_steps", "feeder_config.max_concurrent"),
        _plays_no_training,
        "no training task is played in this mode",
    ),
    Idle(
        ("browser_config.jpeg_quality",),
        lambda config: config.browser_config.screenshot_format != "jpeg",
        "screenshots are no JPEGs",
    ),
    Idle(
        ("browser_config.network_max_entries", "browser_config.network_max_mb"),
        lambda config: not config.browser_config.record_network,
        "no traffic is kept without browser_config.record_network",
    ),
    Idle(
        ("judge_config.webarena_python",),
        _runs_no_webarena,
        "only webarena_verified_v1 runs webarena-verified",
    ),
    Idle(
        ("browser_config.proxy_per", "browser_config.proxy_dns", "browser_config.proxy_cooldown_s"),
        lambda config: not config.browser_config.proxies and not config.browser_config.proxies_file,
        "there are no browser_config.proxies",
    ),
    Idle(
        ("browser_config.block_retries",),
        lambda config: config.browser_config.on_block != "other_identity",
        "only browser_config.on_block=other_identity plays an episode anew",
    ),
    Idle(
        ("browser_config.block_hook", "browser_config.block_hook_timeout_s"),
        lambda config: config.browser_config.on_block != "hook",
        "only browser_config.on_block=hook asks one",
    ),
    Idle(
        ("browser_config.site_wait_s",),
        lambda config: not config.browser_config.site_limits,
        "nobody waits for a turn without browser_config.site_limits",
    ),
    Idle(
        ("browser_config.cdp_token_env_var",),
        lambda config: not config.browser_config.devtools,
        "no browser elsewhere is driven without browser_config.cdp_url or cdp_urls",
    ),
    Idle(
        tuple(
            f"browser_config.provider_{name}"
            for name in ("url", "key_env_var", "project", "region", "proxies", "lease_s", "wait_s")
        ),
        lambda config: config.browser_config.provided_by != "browserbase",
        "only browser_config.provider=browserbase has sessions",
    ),
    Idle(
        tuple(f"browser_config.{name}" for name in ("executable", "max_episodes", "max_memory_mb", "page_memory_mb")),
        lambda config: config.browser_config.provided_by == "browserbase",
        "a session is one episode's, in a browser of the provider's",
    ),
    Idle(
        (_BUS + "weights_kept", _BUS + "weights_max_gb", _BUS + "weights_timeout_s"),
        lambda config: config.bus_config.weights == "path",
        "weights are read from their folder where bus_config.weights is path",
    ),
    Idle(
        (_ALGORITHM + "warmup_steps",),
        lambda config: config.algorithm_config.lr_scheduler_type == "constant",
        "algorithm_config.lr_scheduler_type=constant has no warm-up",
    ),
    Idle(
        ("simulation_config",),
        lambda config: (
            "simulated" not in (config.browser_config.engine, config.policy_config.engine, config.trainer_config.engine)
        ),
        "nothing is simulated",
    ),
    *IDLE_OF_OBJECTIVE,
)


def idle_notes(config: Config) -> tuple[Note, ...]:
    """One for every such key that differs from its default."""
    changed = tuple(_changed(config, Config(), ""))
    return tuple(
        Note(key, f"has no effect here: {idle.why}")
        for idle in IDLE
        if idle.when(config)
        for key in changed
        if any(key == each or key.startswith(f"{each}.") for each in idle.keys)
    )


def _changed(component: object, default: object, prefix: str) -> Iterator[str]:
    if not is_dataclass(component):
        return
    for field in fields(component):
        value, usual = getattr(component, field.name), getattr(default, field.name)
        if is_dataclass(value):
            yield from _changed(value, usual, f"{prefix}{field.name}.")
        elif value != usual:
            yield prefix + field.name
