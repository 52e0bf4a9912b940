"""One configuration from YAML files and command-line overrides: Hydra and OmegaConf compose, then plain dataclasses travel.

A recipe is the name of a committed file (`update_online`) or the path of a person's own YAML file, whose `defaults:` may
name committed recipes and files beside it. Overrides are Hydra's: `policy_config.temperature=0.7`; `objective=grpo` chooses
one of `conf/main/objective`, which overrides of single keys may change.
"""

import dataclasses
import difflib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from agents.prompt_file import is_prompt_file, read_prompt_file
from ops.config.agreement import require_answers, require_known_parts
from ops.config.idle_keys import idle_notes
from ops.config.overrides import literal, quoted
from ops.config.reading import read_yaml
from ops.config.recipes import OBJECTIVES, RECIPES, objective_names, recipe_names
from ops.config.schema import build_config, unknown_key
from ops.config.translation import Note, translated
from ops.config.webgym_keys import SAME_AS, WITHOUT_EFFECT
from schemas.config import Config
from schemas.errors import ConfigurationError

_SUFFIX = ".yaml"
_PROMPT = "model_config.prompt_version"
_TWINS = SAME_AS | {ours: theirs for theirs, ours in SAME_AS.items()}


@dataclass(frozen=True, slots=True)
class MergedFile:
    """One of the files that a configuration is made of."""

    path: Path
    package: str
    """The group that its keys stand in; empty: they are named in full."""


@dataclass(frozen=True, slots=True)
class Loaded:
    config: Config
    notes: tuple[Note, ...]
    """Keys that were written and have no effect."""


Kept = Callable[[Config], Mapping[str, str]]
"""Texts of prompt files, by their paths, that count in place of the files."""


def load_config(recipe: str | Path, overrides: Sequence[str] = (), kept: Kept | None = None) -> Config:
    """Composes one configuration.

    Args:
        recipe: the name of a committed one, or a file.
        overrides: `key=value`.
        kept: asked where the text of a prompt file is needed.

    Raises:
        ConfigurationError: no such recipe, a file that is not YAML, an unknown key, or a wrong value; says what to write.
    """
    return loaded(recipe, overrides, kept).config


def loaded(recipe: str | Path, overrides: Sequence[str] = (), kept: Kept | None = None) -> Loaded:
    """As `load_config`, with what is to be said of it."""
    ours = translated(written(recipe, overrides))
    config = _with_prompt_text(build_config(ours.tree), recipe, overrides, kept)
    require_known_parts(config)
    require_answers(config)
    return Loaded(config, (*ours.notes, *idle_notes(config)))


def written(recipe: str | Path, overrides: Sequence[str] = ()) -> dict[str, object]:
    """What files and overrides say together, whether or not the keys exist. Raises `ConfigurationError`."""
    folder, name = _locate(recipe)
    with _hydra(folder, name):
        composed = OmegaConf.to_container(
            compose(name, overrides=_arguments(folder, name, overrides)), resolve=True, throw_on_missing=True
        )
    if not isinstance(composed, dict):
        raise ConfigurationError(f"{recipe} holds no keys: write groups such as policy_config: and their keys below them")
    return {str(key): value for key, value in composed.items()}


def merged_files(recipe: str | Path, overrides: Sequence[str] = ()) -> tuple[MergedFile, ...]:
    """The files that are merged, in this order: what a later one says counts. Raises `ConfigurationError`."""
    folder, name = _locate(recipe)
    with _hydra(folder, name):
        listed = (
            GlobalHydra.instance()
            .config_loader()
            .compute_defaults_list(name, _arguments(folder, name, overrides), RunMode.RUN)
        )
    found = []
    for each in listed.defaults:
        file = f"{each.config_path}.yaml"
        path = next((place / file for place in (folder, RECIPES) if (place / file).is_file()), None)
        if path is not None:
            found.append(MergedFile(path, each.package or ""))
    return tuple(found)


def prompt_file(recipe: str | Path, overrides: Sequence[str] = ()) -> tuple[str, Path] | None:
    """The name of a prompt file and the folder that it is relative to, if one is asked for. Raises `ConfigurationError`."""
    group, _, key = _PROMPT.partition(".")
    model = written(recipe, overrides).get(group)
    version = model.get(key, "") if isinstance(model, dict) else ""
    if not (isinstance(version, str) and is_prompt_file(version)):
        return None
    return version, _prompt_folder(recipe, overrides)


def overridden_keys(overrides: Sequence[str]) -> tuple[tuple[str, bool], ...]:
    """The keys that overrides name, and whether they are taken away; the choice of an objective is none."""
    parsed = [_parsed(text) for text in overrides]
    keys = [(override.key_or_group, override.is_delete()) for override in parsed]
    return tuple(pair for pair in keys if pair[0] != OBJECTIVES.name)


def dump_config(config: Config) -> str:
    """YAML with every key, which `load_config` reads back to an equal value."""
    return OmegaConf.to_yaml(OmegaConf.create(_plain(dataclasses.asdict(config))))


def _plain(value: object) -> Any:
    """With every text as it is, also one that would stand for another key's value."""
    match value:
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case str():
            return literal(value)
        case _:
            return value


def _with_prompt_text(config: Config, recipe: str | Path, overrides: Sequence[str], kept: Kept | None) -> Config:
    """With the text of a prompt file, unless it stands there already: a run's does not follow its file. Raises
    `ConfigurationError`."""
    model = config.model_config
    if not is_prompt_file(model.prompt_version) or model.prompt_text:
        return config
    known = kept(config) if kept else {}
    text = known.get(model.prompt_version) or read_prompt_file(model.prompt_version, _prompt_folder(recipe, overrides))
    return dataclasses.replace(
        config, model_config=dataclasses.replace(model, prompt_texts={**model.prompt_texts, model.prompt_version: text})
    )


def _prompt_folder(recipe: str | Path, overrides: Sequence[str]) -> Path:
    """Of the file that names the prompt; the working directory where it is an override."""
    if any(key == _PROMPT for key, _ in overridden_keys(overrides)):
        return Path.cwd()
    naming = Path.cwd()
    for merged in merged_files(recipe, overrides):
        said = read_yaml(merged.path)
        for name in _PROMPT.removeprefix(f"{merged.package}.").split("."):
            said = said.get(name) if isinstance(said, dict) else None
        naming = naming if said is None else merged.path.parent
    return naming


def _locate(recipe: str | Path) -> tuple[Path, str]:
    if isinstance(recipe, str) and not recipe.endswith((_SUFFIX, ".yml")):
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
    _require_ending(path)
    _require_readable(path.resolve())
    return path.resolve().parent, path.stem


def _require_ending(*paths: Path) -> None:
    """Hydra is given names, and reads .yaml alone. Raises `ConfigurationError` where one of these files ends otherwise."""
    for path in paths:
        if path.is_file() and not path.name.endswith(_SUFFIX):
            renamed = f"{path.stem}{_SUFFIX}"
            raise ConfigurationError(f"{path} cannot be read, only files that end in {_SUFFIX}: rename it to {renamed}")


def _require_readable(path: Path, above: tuple[Path, ...] = ()) -> None:
    """This file and those that it begins with: Hydra is given none that it would fail or stay over.

    Raises:
        ConfigurationError: one cannot be read, holds no keys, or begins with itself.
    """
    said = read_yaml(path)
    if not isinstance(said, dict):
        raise ConfigurationError(f"{path} holds no keys: write groups such as policy_config: and their keys below them")
    begun = (*above, path)
    listed = said.get("defaults")
    for entry in listed if isinstance(listed, list) else ():
        # What stands beside a person's file comes before a committed recipe of that name, also for other recipes.
        if not isinstance(entry, str):
            continue
        below = _placed(begun[0].parent, entry)
        if below is None:
            _require_ending(*(begun[0].parent / name for name in (entry, f"{entry}.yml")))
            continue
        if below in begun:
            raise ConfigurationError(_in_a_circle(begun[begun.index(below) :], entry))
        _require_readable(below, begun)


def _placed(folder: Path, name: str) -> Path | None:
    """The file that a name stands for, seen from a person's folder."""
    return next((place / f"{name}.yaml" for place in (folder, RECIPES) if (place / f"{name}.yaml").is_file()), None)


def _in_a_circle(circle: tuple[Path, ...], entry: str) -> str:
    last = circle[-1]
    if last.parent != RECIPES:
        meant = ", or give the file another name where the recipe is meant" if entry in recipe_names() else ""
        return f"{last} begins with itself (defaults: {entry}): leave that out{meant}"
    return (
        f"{circle[0]} has the name of a recipe that it begins with (by way of {last.stem}), and stands in its place: "
        "give the file another name"
    )


@contextmanager
def _hydra(folder: Path, name: str) -> Iterator[None]:
    # Hydra keeps its state in a process-wide singleton and refuses a second initialisation while one is alive.
    GlobalHydra.instance().clear()
    try:
        with warnings.catch_warnings(), initialize_config_dir(str(folder), version_base="1.3"):
            # A file without `_self_` in its defaults overrides its parents, which is what its writer means.
            warnings.filterwarnings("ignore", message=".*missing `_self_`.*")
            yield
    except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
        raise ConfigurationError(f"configuration {name}: {_one_line(error)}") from error


def _arguments(folder: Path, name: str, overrides: Sequence[str]) -> list[str]:
    # Hydra takes this key's value as it is written, and resolves nothing in it.
    search = [] if folder == RECIPES else [f"hydra.searchpath=[{quoted(f'file://{RECIPES}')}]"]
    return [*_forced(folder, name, overrides), *search]


def _parsed(text: str) -> Override:
    try:
        return OverridesParser.create().parse_override(text)
    except HydraException as error:
        raise ConfigurationError(
            f"override {text!r} cannot be read: write key=value, with quotes around a value that holds "
            "spaces, commas, brackets or an equals sign: key='\"a value\"'"
        ) from error


def _chooses_objective(folder: Path, name: str, above: tuple[str, ...] = ()) -> bool:
    """Whether the file, or one that it begins with, does so in its `defaults`."""
    path = _placed(folder, name)
    said = read_yaml(path) if path else None
    listed = said.get("defaults") if isinstance(said, dict) else None
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict) and OBJECTIVES.name in entry:
            return True
        known = ("_self_", name, *above)
        if isinstance(entry, str) and entry not in known and _chooses_objective(folder, entry, known):
            return True
    return False


def _forced(folder: Path, name: str, overrides: Sequence[str]) -> list[str]:
    """Lets an override name any key, also one that no file mentions: whether it exists is decided by the dataclasses.

    What has two names is said under both, so that an override counts whichever of them a file uses.
    """
    forced = []
    for text in overrides:
        override = _parsed(text)
        key = override.key_or_group
        if override.is_delete() or override.is_add() or override.is_force_add():
            forced.append(text)
        elif key.partition(".")[0] in {field.name for field in dataclasses.fields(Config)} or key in WITHOUT_EFFECT:
            forced.append(f"++{text}")
            if key in _TWINS:
                forced.append(f"++{_TWINS[key]}={text.partition('=')[2]}")
        elif key == OBJECTIVES.name:
            sign = "" if _chooses_objective(folder, name) else "+"
            forced.append(f"{sign}{_objective(str(override.value()))}")
        else:
            raise ConfigurationError(unknown_key(key))
    return forced


def _objective(name: str) -> str:
    if name not in objective_names():
        raise ConfigurationError(f"there is no objective {name!r}: write one of {', '.join(objective_names())}")
    return f"{OBJECTIVES.name}={name}"


def _one_line(error: Exception) -> str:
    lines = (line.strip() for line in str(error).splitlines())
    return " ".join(line for line in lines if line and not line.startswith(("full_key", "object_type", "provider=")))
