"""Holds conversations to the run that they go into: it has one model, and one way to name and to read what is stored."""

from collections.abc import Callable
from dataclasses import replace

from agents.action_space import ActionSpace
from ops.run.base_models import pinned
from ops.run.folder import RunFolder
from ops.run.joining import subjects_of
from schemas.config import Config
from schemas.errors import ConfigurationError

_ALIKE: tuple[tuple[str, Callable[[Config], object]], ...] = (
    ("model_config", lambda config: config.model_config),
    ("bus_config.rubrics' first", lambda config: config.bus_config.trained_rubric),
    ("bus_config.run and num_shards", subjects_of),
    (
        "context_config's actions and max_calls",
        lambda config: (ActionSpace.of(config.context_config), config.context_config.max_calls),
    ),
)


def agreed(folder: RunFolder, config: Config) -> Config:
    """The configuration with its model under a name that never means another. Blocks, maybe for long.

    Raises:
        ConfigurationError: the model cannot be had, or the run was created for another or stores things otherwise.
    """
    config = _pinned(config)
    if not folder.config.exists():
        return config
    stored = folder.load()
    ours, theirs = config.policy_config.starting_model, stored.policy_config.starting_model
    if ours != theirs and ours != _pinned(stored).policy_config.starting_model:
        raise ConfigurationError(
            f"{folder.path} was created for the model {theirs} and this is for {ours}: conversations are rendered for one "
            "model; leave it out to go on with the run's own, or write the --run-dir of another run"
        )
    for what, of in _ALIKE:
        if of(config) != of(stored):
            raise ConfigurationError(
                f"{what}: {folder.path} was created with {of(stored)}, and this is with {of(config)}: leave it out to go on "
                "with the run's own, or write the --run-dir of another run"
            )
    return config


def _pinned(config: Config) -> Config:
    policy = config.policy_config
    name = pinned(policy)
    named = replace(policy, checkpoint_path=name) if policy.checkpoint_path else replace(policy, base_model=name)
    return replace(config, policy_config=named)
