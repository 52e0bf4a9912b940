"""Lists what an evaluation's metrics depend on besides the model: two are compared only where all of it is equal. Pure."""

import hashlib

import msgspec

from ops.analysis.evaluation.result import Model, Settings
from schemas.config import Config


def settings_of(config: Config, *, tasks_sha256: str, num_tasks: int) -> dict[str, str | int | float | bool | None]:
    """Flat, by names that a person can look up."""
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
        "temperature": policy.temperature,
        "top_p": policy.top_p,
        "top_k": policy.top_k,
        "min_p": policy.min_p,
        "max_new_tokens": policy.max_new_tokens,
        "prompt_version": config.model_config.prompt_version,
        "interaction_mode": context.interaction_mode,
        "actions": context.actions,
        "accessibility_tree": context.accessibility_tree,
        "num_rounds": context.num_rounds,
        "max_steps": f"{caps.easy}/{caps.medium}/{caps.hard}",
        "task_timeout_minutes": env.task_timeout_minutes,
        "browser": browser.engine,
        "viewport": f"{browser.viewport_width}x{browser.viewport_height}",
    }


def differences(one: Settings, other: Settings) -> tuple[str, ...]:
    """Sentences' parts: what differs, and how."""
    names = [name for name in dict.fromkeys((*one, *other)) if one.get(name) != other.get(name)]
    return tuple(f"{name} ({one.get(name)!r} and {other.get(name)!r})" for name in names)


def fingerprint(model: Model, settings: Settings, *, repeat: int, seed: int) -> str:
    """The same for the same evaluation."""
    return hashlib.sha256(msgspec.json.encode((model, dict(settings), repeat, seed), order="sorted")).hexdigest()[:10]
