"""Finds the model that `policy_config.base_model` names: a folder of this machine, or a model of the Hugging Face Hub."""

from pathlib import Path

from ops.run.hub import HubName, cached, fetched
from schemas.errors import ConfigurationError


def model_folder(named: str) -> Path:
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
            f"policy_config.base_model is {named!r}: write the path of a model folder (config.json, safetensors, tokenizer "
            "and processor files), or a name of the hub, as in Qwen/Qwen3-VL-2B-Instruct or Qwen/Qwen3-VL-2B-Instruct@main"
        )
    return fetched(name)


def model_here(named: str) -> Path | None:
    """The same where nothing has to be fetched for it."""
    found, name = _own(named), HubName.of(named)
    if found is not None or name is None or Path(named).exists():
        return found
    return cached(name)


def folder_here(named: str) -> Path | None:
    """The same, or a folder of that name that holds a part of a model."""
    return Path(named) if named and Path(named).is_dir() else model_here(named)


def pinned(named: str) -> str:
    """The same model under a name that never means another: of the hub with its commit, fetched if need be.

    Raises:
        ConfigurationError: as `model_folder`.
    """
    folder, name = model_folder(named), HubName.of(named)
    if name is None or _own(named) is not None:
        return str(folder)
    return str(HubName(name.repository, folder.name))


def _own(named: str) -> Path | None:
    """A model's folder of this name."""
    return Path(named) if named and (Path(named) / "config.json").is_file() else None
