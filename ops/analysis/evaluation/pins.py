"""The keys of the configuration that a protocol says the values of: nothing else may say another. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ops.analysis.evaluation.protocol import Protocol
from ops.config.loading import overridden_keys
from ops.config.webgym_keys import SAME_AS
from schemas.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Pin:
    key: str
    """Of the protocol."""
    value: Callable[[Protocol], object]
    """`UNSAID`: this protocol leaves it as it is."""


UNSAID = object()


def _tokens(said: Protocol) -> object:
    return UNSAID if said.context.tokens is None else said.context.tokens


def _stage_model(said: Protocol) -> object:
    """The judge's model answers every kind of question."""
    return "" if said.judge.model else UNSAID


PINS: Mapping[str, Pin] = {
    "env_config.test_tasks": Pin("tasks.file", lambda said: said.tasks.file),
    "env_config.test_tasks_repeat_times": Pin("repeats", lambda said: said.repeats),
    "env_config.test_tasks_rollout_size": Pin("tasks.first", lambda said: -1),
    "env_config.test_difficulty_max_steps.easy": Pin("steps", lambda said: said.step_caps.easy),
    "env_config.test_difficulty_max_steps.medium": Pin("steps", lambda said: said.step_caps.medium),
    "env_config.test_difficulty_max_steps.hard": Pin("steps", lambda said: said.step_caps.hard),
    "env_config.task_timeout_minutes": Pin("minutes", lambda said: said.minutes),
    "env_config.max_unparsed": Pin("unparsed", lambda said: said.unparsed),
    "env_config.max_retries": Pin("retries", lambda said: said.retries),
    "feeder_config.seed": Pin("seeds", lambda said: said.seeds[0]),
    "policy_config.temperature": Pin("sampling.temperature", lambda said: said.sampling.temperature),
    "policy_config.eval_temperature": Pin("sampling.temperature", lambda said: None),
    "policy_config.top_p": Pin("sampling.top_p", lambda said: said.sampling.top_p),
    "policy_config.top_k": Pin("sampling.top_k", lambda said: said.sampling.top_k),
    "policy_config.min_p": Pin("sampling.min_p", lambda said: said.sampling.min_p),
    "policy_config.max_new_tokens": Pin("sampling.max_tokens", lambda said: said.sampling.max_tokens),
    "policy_config.max_model_len": Pin("context.tokens", _tokens),
    "algorithm_config.cutoff_len": Pin("context.tokens", _tokens),
    "browser_config.viewport_width": Pin("viewport.width", lambda said: said.viewport.width),
    "browser_config.viewport_height": Pin("viewport.height", lambda said: said.viewport.height),
    "context_config.num_rounds": Pin("context.screenshots", lambda said: said.context.screenshots - 1),
    "context_config.interaction_mode": Pin("context.targets", lambda said: said.context.targets),
    "context_config.actions": Pin("context.actions", lambda said: said.context.actions),
    "context_config.history": Pin("context.history", lambda said: said.context.history),
    "context_config.max_calls": Pin("context.calls", lambda said: said.context.calls),
    "context_config.accessibility_tree": Pin("context.accessibility_tree", lambda said: said.context.accessibility_tree),
    "model_config.prompt_version": Pin("prompt", lambda said: said.prompt),
    "judge_config.judge": Pin("judge.name", lambda said: said.judge.name),
    "judge_config.num_votes": Pin("judge.votes", lambda said: said.judge.votes),
    "judge_config.max_evidence_screenshots": Pin("judge.screenshots", lambda said: said.judge.screenshots),
    "judge_config.label": Pin("judge.name", lambda said: ""),
    "judge_config.prompts": Pin("judge.name", lambda said: ""),
    "openai_config.temperature": Pin("judge.temperature", lambda said: said.judge.temperature),
    "openai_config.model": Pin("judge.model", lambda said: said.judge.model or UNSAID),
    "openai_config.keypoint_detection.model": Pin("judge.model", _stage_model),
    "openai_config.blocking_detection.model": Pin("judge.model", _stage_model),
    "openai_config.evaluation.model": Pin("judge.model", _stage_model),
    "bus_config.rubrics": Pin("judge.name", lambda said: UNSAID),
}


def pinned(protocol: Protocol) -> dict[str, object]:
    """Values by keys of the configuration."""
    values = {key: pin.value(protocol) for key, pin in PINS.items()}
    return {key: value for key, value in values.items() if value is not UNSAID}


def pin_of(key: str) -> str:
    """The protocol's key that says the value of a key of the configuration, or of one below it; empty: none does."""
    key = SAME_AS.get(key, key)
    within = (pin.key for name, pin in PINS.items() if name == key or name.startswith(f"{key}."))
    return next(within, "")


def require_free(overrides: Sequence[str]) -> None:
    """Raises `ConfigurationError` where an override says what the protocol says."""
    for key, _ in overridden_keys(overrides):
        if pin := pin_of(key):
            is_group = any(known.startswith(f"{key}.") for known in PINS)
            holds = f"{key} holds what the protocol says as {pin}: write its other keys one by one"
            raise ConfigurationError(
                f"{holds if is_group else f'{key} is what the protocol says as {pin}: leave it out'}, or evaluate by a "
                "protocol of your own (a copy of the file under another name)"
            )
