"""Prints a configuration with the origin of every value, or explains a key."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ops.commands.arguments import add_config, add_overrides
from ops.commands.execution import interruptible
from ops.config.display import as_json, as_yaml
from ops.config.elsewhere.page import names_page
from ops.config.explaining import explained
from ops.config.pages import keys_page
from ops.config.parts import parts_table
from ops.config.resolved import resolve
from ops.console.completion import completed_by, keys, recipes_and_files
from ops.console.terminal import Console
from schemas.errors import ConfigurationError

EXAMPLE = """\
millrace config update_online policy_config.top_k=5 --changed
millrace config --run-dir runs/quickstart
millrace config --explain env_config.completion_threshold
millrace config --parts"""
PAGES = {"keys": keys_page, "names": names_page}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    shown = add("recipe", nargs="?", metavar="RECIPE", help="recipe or .yaml file to print (default: the recipe default)")
    completed_by(shown, recipes_and_files)
    add("--run-dir", type=Path, metavar="DIR", help="print the stored configuration of this run")
    add_config(parser, "recipe or .yaml file, as other commands name it")
    explained = add("--explain", default="", metavar="KEY", help="say what a key or group means, and its value")
    completed_by(explained, keys)
    add("--parts", action="store_true", help="list the parts that a configuration can name, with where each comes from")
    add("--changed", action="store_true", help="only what differs from the defaults")
    add("--json", action="store_true", help="JSON in place of YAML")
    add("--markdown", choices=("keys", "names"), help="print one of the tables in docs/")
    add_overrides(parser)


@interruptible
async def run(options: argparse.Namespace) -> int:
    if options.markdown:
        print(PAGES[options.markdown](), end="")
        return 0
    if options.parts:
        Console().print(parts_table())
        return 0
    words = [options.recipe] if options.recipe else []
    recipe, overrides = chosen_recipe([*words, *options.overrides], options.run_dir, options.config)
    console = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
    resolved = resolve(recipe, overrides)
    if options.explain:
        for line in explained(options.explain, resolved):
            console.print(line, soft_wrap=True)
    elif options.json:
        console.out(as_json(resolved, changed=options.changed), highlight=False)
    else:
        for text in as_yaml(resolved, changed=options.changed):
            console.print(text, soft_wrap=True)
    return 0


def chosen_recipe(words: Sequence[str], run_dir: Path | None, file: str | None) -> tuple[str | Path, tuple[str, ...]]:
    """The recipe or file that is meant by the command's words, and the overrides among them.

    Raises:
        ConfigurationError: more than one is named, or the folder holds no run.
    """
    overrides = tuple(word for word in words if "=" in word or word.startswith("~"))
    named: list[str | Path] = [_stored(Path(word)) or word for word in words if word not in overrides]
    if file is not None:
        named.append(file)
    if run_dir is not None:
        stored = _stored(run_dir)
        if stored is None:
            raise ConfigurationError(f"{run_dir} holds no run: give the --run-dir of one, or the name of a recipe")
        named.append(stored)
    if len(named) > 1:
        raise ConfigurationError(f"{' and '.join(map(str, named))} are several configurations: name one")
    return (named[0] if named else "default"), overrides


def _stored(run_dir: Path) -> Path | None:
    stored = run_dir / "config.yaml"
    return stored if stored.is_file() else None
