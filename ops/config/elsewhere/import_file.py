"""Writes what an import came to: a configuration that begins with a recipe, and a DeepSpeed file where no shipped one fits."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from ops.config.elsewhere.answer import Answers
from ops.config.elsewhere.deepspeed_file import deepspeed_file
from ops.config.elsewhere.fitting import merged
from ops.config.elsewhere.row import DEEPSPEED
from ops.config.loading import loaded
from schemas.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    configuration: Path
    deepspeed: Path | None
    deepspeed_name: str
    """What the configuration names; empty where it says nothing of it."""


def write_import(found: Answers, source: Path, out: Path) -> WrittenFiles:
    """Both are new: what is there already is not written over.

    Raises:
        ConfigurationError: the name is none of a YAML file's, one of them exists, or cannot be written.
    """
    if out.suffix != ".yaml":
        raise ConfigurationError(f"--out is {out}: write a name that ends in .yaml")
    file = deepspeed_file(found.values)
    beside = out.with_name(f"{out.stem}_deepspeed.json") if file is not None and not file.shipped else None
    for path in filter(None, (out, beside)):
        if path.exists():
            raise ConfigurationError(f"{path} exists: write another name for --out, or move it away")
    tree = merged({}, found.all)
    name = "" if file is None else file.shipped or str(beside.resolve() if beside else "")
    if name:
        group = tree.setdefault(DEEPSPEED.partition(".")[0], {})
        assert isinstance(group, dict), "groups are made as dictionaries"
        group[DEEPSPEED.partition(".")[2]] = name
    try:
        if beside is not None and file is not None:
            beside.write_text(json.dumps(file.settings, indent=2) + "\n", encoding="utf-8")
        out.write_text(_text(found, source, tree), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{out} cannot be written ({error.strerror}): write another name for --out") from error
    loaded(out)
    return WrittenFiles(out, beside, name)


def _text(found: Answers, source: Path, tree: Mapping[str, object]) -> str:
    head = f"# Made by `millrace config import` of {source.name}, a file of {found.program.name}'s.\n"
    body = {"defaults": [found.program.recipe, "_self_"], **tree}
    return head + str(yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=100))
