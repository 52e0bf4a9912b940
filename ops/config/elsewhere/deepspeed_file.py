"""The DeepSpeed file that an imported configuration names: a shipped one where it fits, else one of its own. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.config.elsewhere.row import IN_FILE

_SHIPPED = Path(__file__).parent.parent / "deepspeed"
_OFFLOADED = {"device": "cpu", "pin_memory": True}
_STAGE, _PRECISION, _CHECKPOINTING = "zero_optimization.stage", "precision", "activation_checkpointing"
_PARTS = ("offload_param", "offload_optimizer")
FILE_SETTINGS = (_STAGE, _PRECISION, _CHECKPOINTING, *(f"zero_optimization.{part}" for part in _PARTS))


@dataclass(frozen=True, slots=True)
class DeepSpeedFile:
    shipped: str
    """Its name; empty where `settings` are to be written."""
    settings: Mapping[str, Any]


def deepspeed_file(values: Mapping[str, object]) -> DeepSpeedFile | None:
    """Of imported values; None where they say nothing of it, so that the recipe's own stays."""
    said = {key.removeprefix(IN_FILE): value for key, value in values.items() if key.startswith(IN_FILE)}
    if not said:
        return None
    param, optimizer = (bool(said.get(f"zero_optimization.{part}")) for part in _PARTS)
    stage = 3 if param else int(str(said.get(_STAGE, 1)))
    precision, checkpoints = said.get(_PRECISION, "bf16"), bool(said.get(_CHECKPOINTING, True))
    if precision == "bf16" and checkpoints:
        if not param and not optimizer:
            return DeepSpeedFile(f"ds_config_b200_zero{stage}.json", {})
        if param and optimizer:
            return DeepSpeedFile("ds_config_h100_zero3.json", {})
    settings = json.loads((_SHIPPED / f"ds_config_b200_zero{stage}.json").read_text(encoding="utf-8"))
    del settings["bf16"]
    if precision:
        settings = {str(precision): {"enabled": True}, **settings}
    if not checkpoints:
        del settings[_CHECKPOINTING]
    for part, wanted in zip(_PARTS, (param, optimizer), strict=True):
        if wanted:
            settings["zero_optimization"][part] = _OFFLOADED
    return DeepSpeedFile("", settings)
