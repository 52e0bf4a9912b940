"""Finds the model that a configuration names: a folder of this machine, or a model of the Hugging Face Hub."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ops.run.hub import HubName, cached, fetched, fetched_description
from schemas.errors import ConfigurationError
from schemas.objective_config import ObjectiveConfig
from schemas.policy_config import PolicyConfig


def starting_model(policy: PolicyConfig) -> Path:
    """The folder of the model that version 0 stands for. Blocks, maybe for long.

    Raises:
        ConfigurationError: as `model_folder`.
    """
    key = "policy_config.checkpoint_path" if policy.checkpoint_path else "policy_config.base_model"
    return model_folder(policy.starting_model, key=key)


def reference_model(objective: ObjectiveConfig) -> Path | None:
    """The folder of the model that divergences are measured from, where that is another one. Blocks, maybe for long.

    Raises:
        ConfigurationError: as `model_folder`.
    """
    named = objective.reference_model
    return model_folder(named, key="objective_config.reference_model") if named else None


def model_folder(named: str, *, key: str = "policy_config.base_model") -> Path:
    """The folder of a model: that one, or the hub's in this machine's cache, fetched if need be. Blocks, maybe for long.

    Raises:
        ConfigurationError: there is none, or it cannot be had; says what to do.
    """
    found = _own(named)
    if found is not None:
        return found.resolve()
    name = HubName.of(named)
    if name is None or Path(named).exists():
        raise ConfigurationError(
            f"{key} is {named!r}: write the path of a model folder (config.json, safetensors, tokenizer "
            "and processor files), or a name of the hub, as in Qwen/Qwen3-VL-2B-Instruct or Qwen/Qwen3-VL-2B-Instruct@main"
        )
    return fetched(name)


def model_here(named: str) -> Path | None:
    """The same where nothing has to be fetched for it."""
    found, name = _own(named), HubName.of(named)
    if found is not None or name is None or Path(named).exists():
        return found
    return cached(name)


@contextmanager
def described(policy: PolicyConfig) -> Iterator[Path]:
    """A folder with the config.json of the model that version 0 stands for. Of the hub that file alone is fetched.

    Raises:
        ConfigurationError: as `model_folder`.
    """
    found, name = model_here(policy.starting_model), HubName.of(policy.starting_model)
    if found is not None or name is None:
        yield found or starting_model(policy)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield fetched_description(name, Path(folder))


def folder_here(named: str) -> Path | None:
    """The same, or a folder of that name that holds a part of a model."""
    return Path(named) if named and Path(named).is_dir() else model_here(named)


def pinned(policy: PolicyConfig) -> str:
    """The model that version 0 is, under a name that never means another: of the hub with its commit; fetched if need be.

    Raises:
        ConfigurationError: as `model_folder`.
    """
    folder, name = starting_model(policy), HubName.of(policy.starting_model)
    if name is None or _own(policy.starting_model) is not None:
        return str(folder)
    return str(HubName(name.repository, folder.name))


def _own(named: str) -> Path | None:
    """A model's folder of this name."""
    return Path(named) if named and (Path(named) / "config.json").is_file() else None
