"""Traces every value of a configuration to its origin: a line of a file, an override, another key, or the default.

Files count in the order in which Hydra merges them, so the last one that says something about a key is its origin.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from ops.config.loading import MergedFile, merged_files, overridden_keys
from ops.config.recipes import RECIPES
from ops.config.schema import known_keys
from ops.config.translation import WHOLE_DISTRIBUTION
from ops.config.webgym_keys import SAME_AS, SPLIT

DEFAULT = "default"
OVERRIDE = "override"
_DERIVED = {
    "bus_config.rubrics": ("judge_config.label", "judge_config.judge", "openai_config"),
    "feeder_config.mode": (SPLIT,),
    "judge_config.judge": ("openai_config",),
    **dict.fromkeys(WHOLE_DISTRIBUTION, ("objective_config.adv_estimator",)),
}
"""Keys that follow from others where nobody says anything about them (`ops.config.schema`, `ops.config.translation`)."""


def origins(recipe: str | Path, overrides: Sequence[str] = ()) -> dict[str, str]:
    """By key, `mine.yaml:7`, `override`, `default` or `by` another key; those of WebGym's own keys that were written too."""
    said: dict[str, str] = {}
    for merged in merged_files(recipe, overrides):
        for key, line in _leaves(merged):
            # What is said again moves to the end.
            said.pop(key, None)
            said[key] = line
    for key, is_deleted in overridden_keys(overrides):
        said = {name: origin for name, origin in said.items() if name != key and not name.startswith(f"{key}.")}
        said[key] = DEFAULT if is_deleted else OVERRIDE
    for key, ours in SAME_AS.items():
        if key in said and said.get(ours) != OVERRIDE:
            said[ours] = said[key]
    said.pop("defaults", None)
    return {key: _origin(key, said) for key in dict.fromkeys((*known_keys(), *said))}


def _origin(key: str, said: Mapping[str, str]) -> str:
    if key in said:
        return said[key]
    parts = key.split(".")
    if any(said.get(".".join(parts[:count])) == OVERRIDE for count in range(1, len(parts))):
        return OVERRIDE
    if below := [origin for name, origin in said.items() if name.startswith(f"{key}.")]:
        return below[-1]
    for other in _DERIVED.get(key, ()):
        if found := said.get(other) or next((line for name, line in said.items() if name.startswith(f"{other}.")), ""):
            return f"by {other}, {found}"
    return DEFAULT


def _leaves(merged: MergedFile) -> Iterator[tuple[str, str]]:
    node = yaml.compose(merged.path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    name = _shown(merged.path)
    for key, line in _walk(node, f"{merged.package}." if merged.package else ""):
        yield key, f"{name}:{line}"


def _walk(node: yaml.Node | None, prefix: str) -> Iterator[tuple[str, int]]:
    if not isinstance(node, yaml.MappingNode):
        return
    for name, value in node.value:
        key = f"{prefix}{name.value}"
        if isinstance(value, yaml.MappingNode) and value.value:
            yield from _walk(value, f"{key}.")
        else:
            yield key, name.start_mark.line + 1


def _shown(path: Path) -> Path:
    """A committed file by its name, any other as seen from here."""
    for folder in (RECIPES, Path.cwd()):
        if path.is_relative_to(folder):
            return path.relative_to(folder)
    return path
