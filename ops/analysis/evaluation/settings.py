"""Lists what an evaluation's metrics depend on besides the model: two are compared only where all of it is equal. Pure."""

import hashlib
from collections.abc import Sequence

import msgspec

from ops.analysis.evaluation.counted_keys import changed, counted
from ops.analysis.evaluation.identity import Model
from ops.analysis.evaluation.protocol import Protocol
from ops.analysis.evaluation.result import Setting, Settings
from schemas.config import Config
from schemas.model_config import ModelConfig

_CONFIGURATION = "configuration"
_NAMED = frozenset(
    {
        "judge_config.label",
        "judge_config.prompts",
        "judge_config.num_votes",
        "openai_config.model",
        "openai_config.keypoint_detection.model",
        "openai_config.blocking_detection.model",
        "openai_config.evaluation.model",
        "openai_config.temperature",
        "policy_config.top_p",
        "policy_config.top_k",
        "policy_config.min_p",
        "policy_config.max_new_tokens",
        "model_config.prompt_version",
        "context_config.interaction_mode",
        "context_config.actions",
        "context_config.accessibility_tree",
        "context_config.num_rounds",
        "env_config.test_difficulty_max_steps.easy",
        "env_config.test_difficulty_max_steps.medium",
        "env_config.test_difficulty_max_steps.hard",
        "env_config.task_timeout_minutes",
        "env_config.max_unparsed",
        "env_config.max_retries",
        "browser_config.engine",
        "browser_config.viewport_width",
        "browser_config.viewport_height",
    }
)
"""Keys that a name of `settings_of` has the value of."""


def settings_of(config: Config, *, tasks_sha256: str, num_tasks: int) -> dict[str, Setting]:
    """Flat: what people ask for first by names of its own, then every other key that is not as by default, and a digest of all
    keys that count."""
    policy, env, judge, model = config.policy_config, config.env_config, config.judge_config, config.openai_config
    caps, context, browser = env.test_difficulty_max_steps, config.context_config, config.browser_config
    return {
        "tasks": tasks_sha256,
        "num_tasks": num_tasks,
        "judge": judge.rubric,
        "judge_prompts": judge.prompts,
        "judge_votes": judge.num_votes,
        "judge_model": model.model,
        "judge_model_keypoints": model.keypoint_detection.model,
        "judge_model_blocking": model.blocking_detection.model,
        "judge_model_evaluation": model.evaluation.model,
        "judge_temperature": model.temperature,
        "temperature": policy.temperature_of(evaluation=True),
        "top_p": policy.top_p,
        "top_k": policy.top_k,
        "min_p": policy.min_p,
        "max_new_tokens": policy.max_new_tokens,
        "prompt_version": _prompt(config.model_config),
        "interaction_mode": context.interaction_mode,
        "actions": context.actions,
        "accessibility_tree": context.accessibility_tree,
        "num_rounds": context.num_rounds,
        "max_steps": f"{caps.easy}/{caps.medium}/{caps.hard}",
        "task_timeout_minutes": env.task_timeout_minutes,
        "unparsed": env.max_unparsed,
        "retries": env.max_retries,
        "browser": browser.engine,
        "viewport": f"{browser.viewport_width}x{browser.viewport_height}",
        **{key: said for key, said in changed(config).items() if key not in _NAMED},
        _CONFIGURATION: hashlib.sha256(msgspec.json.encode(counted(config), order="sorted")).hexdigest(),
    }


def _prompt(model: ModelConfig) -> str:
    """A prompt file's text counts, wherever it stands."""
    digest = hashlib.sha256(model.prompt_text.encode()).hexdigest()
    return f"{model.prompt_version} {digest[:16]}" if model.prompt_text else model.prompt_version


def protocol_settings(protocol: Protocol) -> dict[str, Setting]:
    """What a protocol says that is no key of the configuration."""
    return {
        "blocked": ", ".join(sorted(protocol.apart.blocked)),
        "invalid": ", ".join(sorted(protocol.apart.invalid)),
    }


def differences(one: Settings, other: Settings) -> tuple[str, ...]:
    """Sentences' parts: what differs, and how. The digest stands there alone, where defaults have changed in between."""
    names = [name for name in dict.fromkeys((*one, *other)) if one.get(name) != other.get(name)]
    told = [name for name in names if name != _CONFIGURATION] or names
    return tuple(f"{name} ({_said(one, name)} and {_said(other, name)})" for name in told)


def _said(settings: Settings, name: str) -> str:
    """Of a key of the configuration its JSON; where it is missing, it is as by default."""
    if "." not in name:
        return repr(settings.get(name))
    return str(settings[name]) if name in settings else "its default"


def fingerprint(model: Model, settings: Settings, *, repeat: int, seed: int | Sequence[int]) -> str:
    """The same for the same evaluation."""
    return hashlib.sha256(msgspec.json.encode((model, dict(settings), repeat, seed), order="sorted")).hexdigest()[:10]
