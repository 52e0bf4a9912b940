"""One configuration from YAML files and command-line overrides: Hydra and OmegaConf compose, then plain dataclasses travel.

A recipe is the name of a committed file (`update_online`) or the path of a person's own YAML file, whose `defaults:` may
name committed recipes and files beside it. Overrides are Hydra's: `policy_config.temperature=0.7`; `objective=grpo` chooses
one of `conf/main/objective`, which overrides of single keys may change.
"""

import dataclasses
import difflib
import warnings
from collections.abc import Sequence
from pathlib import Path

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ops.config_schema import build_config, nearest_key
from ops.recipes import OBJECTIVES, RECIPES, objective_names, recipe_names
from schemas.config import Config
from schemas.errors import ConfigurationError

_SUFFIXES = (".yaml", ".yml")


def load_config(recipe: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Composes one configuration.

    Raises:
        ConfigurationError: no such recipe, a file that is not YAML, an unknown key, or a wrong value; says what to write.
    """
    folder, name = _locate(recipe)
    composed = _compose(folder, name, overrides)
    if not isinstance(composed, dict):
        raise ConfigurationError(f"{recipe} holds no keys: write groups such as policy_config: and their keys below them")
    return build_config({str(key): value for key, value in composed.items()})


def dump_config(config: Config) -> str:
    """YAML with every key, which `load_config` reads back to an equal value."""
    return OmegaConf.to_yaml(OmegaConf.create(dataclasses.asdict(config)))


def _locate(recipe: str | Path) -> tuple[Path, str]:
    if isinstance(recipe, str) and not recipe.endswith(_SUFFIXES):
        if recipe in recipe_names():
            return RECIPES, recipe
        nearest = difflib.get_close_matches(recipe, recipe_names(), n=1, cutoff=0.0)[0]
        listed = ", ".join(recipe_names())
        raise ConfigurationError(
            f"there is no recipe {recipe!r}; did you mean {nearest}? Write one of {listed}, or the path of a .yaml file"
        )
    path = Path(recipe)
    if not path.is_file():
        raise ConfigurationError(f"there is no configuration file {path}: write the path of a .yaml file that exists")
    return path.resolve().parent, path.stem


def _compose(folder: Path, name: str, overrides: Sequence[str]) -> object:
    # Hydra keeps its state in a process-wide singleton and refuses a second initialisation while one is alive.
    GlobalHydra.instance().clear()
    try:
        with warnings.catch_warnings(), initialize_config_dir(str(folder), version_base="1.3"):
            # A file without `_self_` in its defaults overrides its parents, which is what its writer means.
            warnings.filterwarnings("ignore", message=".*missing `_self_`.*")
            search = [] if folder == RECIPES else [f"hydra.searchpath=[file://{RECIPES}]"]
            composed = compose(name, overrides=[*_forced(overrides), *search])
            return OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
        raise ConfigurationError(f"configuration {name}: {_one_line(error)}") from error


def _forced(overrides: Sequence[str]) -> list[str]:
    """Lets an override name any key, also one that no file mentions: whether it exists is decided by the dataclasses."""
    parser = OverridesParser.create()
    forced = []
    for text in overrides:
        try:
            override = parser.parse_override(text)
        except HydraException as error:
            raise ConfigurationError(
                f"override {text!r} cannot be read: write key=value, with quotes around a value that holds "
                "spaces, commas, brackets or an equals sign: key='\"a value\"'"
            ) from error
        key = override.key_or_group
        if override.is_delete() or override.is_add() or override.is_force_add():
            forced.append(text)
        elif key.partition(".")[0] in {field.name for field in dataclasses.fields(Config)}:
            forced.append(f"++{text}")
        elif key == OBJECTIVES.name:
            forced.append(f"+{_objective(str(override.value()))}")
        else:
            raise ConfigurationError(f"{key} is not a key of the configuration; did you mean {nearest_key(key)}?")
    return forced


def _objective(name: str) -> str:
    if name not in objective_names():
        raise ConfigurationError(f"there is no objective {name!r}: write one of {', '.join(objective_names())}")
    return f"{OBJECTIVES.name}={name}"


def _one_line(error: Exception) -> str:
    lines = (line.strip() for line in str(error).splitlines())
    return " ".join(line for line in lines if line and not line.startswith(("full_key", "object_type", "provider=")))
