"""Reads what a checkpoint's folder says about adapters: whether it holds any, which, and on what base. Loads without torch."""

import json
from pathlib import Path

from schemas.errors import CheckpointCorrupt, ConfigurationError
from schemas.lora_config import LANGUAGE_LAYERS, SCREENSHOT_LAYERS, LoraConfig

_CONFIG = "adapter_config.json"


def holds_adapters(folder: Path) -> bool:
    """Whether a checkpoint folder holds adapters instead of a whole model."""
    return (folder / _CONFIG).is_file()


def base_of(folder: Path) -> Path:
    """The folder of the whole model that belongs to a checkpoint: itself, unless it holds adapters.

    Raises:
        CheckpointCorrupt: adapters that do not name their base, or name one that is not there.
    """
    if not holds_adapters(folder):
        return folder
    base = Path(str(_read(folder).get("base_model_name_or_path") or ""))
    if not (base / "config.json").is_file():
        raise CheckpointCorrupt(
            f"{folder / _CONFIG} names {base} as its base, which is not the folder of a model: put it back"
        )
    return base


def require_adapters(folder: Path, lora: LoraConfig, *, resume: bool) -> None:
    """Raises `ConfigurationError` unless training with `lora` can go on from `folder`."""
    if not holds_adapters(folder):
        if resume and lora.active:
            raise ConfigurationError(
                f"{folder} holds a whole model, and trainer_config.lora.rank is {lora.rank}: write 0, or begin a new run with "
                "this folder as policy_config.base_model"
            )
        return
    saved = _read(folder)
    wanted = {"r": lora.rank, "lora_alpha": lora.alpha, "target_modules": target_pattern(lora)}
    for name, value in wanted.items():
        if saved.get(name) != value:
            raise ConfigurationError(
                f"{folder} holds adapters whose {name} is {saved.get(name)!r}, and trainer_config.lora says {value!r}: write "
                "what the run was begun with, or begin a new run"
            )


def target_pattern(lora: LoraConfig) -> str:
    """peft's expression for the targets: whole names, so that other layers of the same last name are left alone."""
    language = "|".join(name for name in LANGUAGE_LAYERS if name in lora.targets)
    screenshots = "|".join(name for name in SCREENSHOT_LAYERS if name in lora.targets)
    parts = []
    if language:
        parts.append(rf"model\.language_model\.layers\.(.*\.)?({language})")
    if screenshots:
        parts.append(rf"model\.visual\.(blocks|merger|deepstack_merger_list)\.(.*\.)?({screenshots})")
    return "|".join(parts)


def _read(folder: Path) -> dict[str, object]:
    try:
        config: dict[str, object] = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointCorrupt(f"{folder / _CONFIG} cannot be read: {error}") from error
    return config
