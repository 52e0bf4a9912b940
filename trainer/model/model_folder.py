"""Reads a model's folder, besides its weights."""

import json
from pathlib import Path

from schemas.errors import ConfigurationError


def suppressed_tokens(folder: Path) -> tuple[int, ...]:
    """Control tokens that the sampler never produces: all special ones but those that end a turn.

    The sampler renormalises over the rest, so the trainer's log-probabilities must leave them out too.

    Raises:
        ConfigurationError: the folder has no tokenizer.json or config.json.
    """
    added = _read(folder / "tokenizer.json").get("added_tokens", [])
    special = {int(token["id"]) for token in added if token.get("special")}
    return tuple(sorted(special - stop_tokens(folder)))


def stop_tokens(folder: Path) -> set[int]:
    """Those that end a turn. Raises `ConfigurationError` as `suppressed_tokens` does."""
    generation = folder / "generation_config.json"
    stop = _read(generation).get("eos_token_id") if generation.exists() else None
    if stop is None:
        config = _read(folder / "config.json")
        stop = config.get("text_config", config).get("eos_token_id")
    if stop is None:
        raise ConfigurationError(f"{folder} does not say which token ends a turn: set eos_token_id in generation_config.json")
    return set(stop) if isinstance(stop, list) else {stop}


def _read(file: Path) -> dict:  # type: ignore[type-arg]
    try:
        settings: dict = json.loads(file.read_text(encoding="utf-8"))  # type: ignore[type-arg]
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: policy_config.base_model must be the folder of a model") from error
    return settings
