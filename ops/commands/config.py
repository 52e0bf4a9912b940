"""`millrace config`: prints a configuration with the origin of every value, or explains one of its keys."""

from collections.abc import Sequence
from pathlib import Path

from ops.config.display import as_json, as_yaml
from ops.config.explaining import explained
from ops.config.pages import keys_page, names_page
from ops.config.resolved import resolve
from ops.console.terminal import Console
from schemas.errors import ConfigurationError

PAGES = {"keys": keys_page, "names": names_page}


def main(
    recipe: str | Path, overrides: Sequence[str], *, explain: str = "", changed: bool = False, as_text: str = "yaml"
) -> int:
    """`as_text`: yaml or json. Raises `ConfigurationError`."""
    console = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
    resolved = resolve(recipe, overrides)
    if explain:
        for line in explained(explain, resolved):
            console.print(line, soft_wrap=True)
    elif as_text == "json":
        console.out(as_json(resolved, changed=changed), highlight=False)
    else:
        for text in as_yaml(resolved, changed=changed):
            console.print(text, soft_wrap=True)
    return 0


def print_page(name: str) -> int:
    """One of the pages in docs/ that are made of the code."""
    print(PAGES[name](), end="")
    return 0


def chosen_recipe(words: Sequence[str], run_dir: Path | None, file: str | None) -> tuple[str | Path, tuple[str, ...]]:
    """The recipe or file that is meant by the command's words, and the overrides among them.

    Raises:
        ConfigurationError: more than one is named, or the folder holds no run.
    """
    overrides = tuple(word for word in words if "=" in word or word.startswith("~"))
    named: list[str | Path] = [word for word in words if word not in overrides]
    if file is not None:
        named.append(file)
    if run_dir is not None:
        stored = run_dir / "config.yaml"
        if not stored.is_file():
            raise ConfigurationError(f"{run_dir} holds no run: give the --run-dir of one, or the name of a recipe")
        named.append(stored)
    if len(named) > 1:
        raise ConfigurationError(f"{' and '.join(map(str, named))} are several configurations: name one")
    return (named[0] if named else "default"), overrides
