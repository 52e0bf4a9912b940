"""Reads a YAML configuration as values by their full keys, with the files beside it that its `defaults` names."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import yaml

from ops.config.elsewhere.interpolation import resolved
from schemas.errors import ConfigurationError

_MOST_VALUES, _MOST_DEPTH = 20_000, 60
_MOST_FILES = 40
_SELF = "_self_"
_PACKAGE = re.compile(r"\s*(?:#[^\n]*\n\s*)*?#\s*@package:?[ \t]+(\S+)")


def yaml_values(path: Path, text: str, read: Callable[[Path], str]) -> dict[str, object]:
    """With `read` for the files beside it.

    Raises:
        ConfigurationError: it is no YAML, no mapping of keys, or larger than any configuration.
    """
    files = _Files(path.parent, read)
    values = files.values(path, text, "")
    if files.asked_for:
        values["defaults"] = files.not_found
    return resolved(values)


def looks_like_yaml(text: str) -> bool:
    try:
        return isinstance(yaml.safe_load(text), dict)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError):
        return False


class _Files:
    """What the files of one composition say; each is read where it is named."""

    def __init__(self, root: Path, read: Callable[[Path], str]) -> None:
        self.not_found: list[object] = []
        self.asked_for = False
        self._root, self._read, self._count = root, read, 0

    def values(self, path: Path, text: str, package: str) -> dict[str, object]:
        """A file's keys, under its package: what is named behind `_self_` counts more than its own, the rest less."""
        tree = _tree(path, text)
        count = iter(range(_MOST_VALUES))
        entries = tree.get("defaults")
        if not isinstance(entries, list):
            return dict(_flat(path, tree, package, 0, count))
        self.asked_for = True
        own = {key: value for key, value in tree.items() if key != "defaults"}
        found: dict[str, object] = {}
        for entry in entries if _SELF in entries else [*entries, _SELF]:
            if entry == _SELF:
                found |= _flat(path, own, package, 0, count)
            elif named := _named(entry):
                found |= self._composed(path, package, *named)
        return found

    def _composed(self, path: Path, package: str, group: str, option: str, under: str | None) -> dict[str, object]:
        """Of a file that is named in another one, `/` before its group for the first file's folder."""
        name = f"{group}/{option}" if group else option
        folder = self._root if name.startswith("/") else path.parent
        file = folder / name.lstrip("/")
        file = file if file.suffix in (".yaml", ".yml") else file.with_name(f"{file.name}.yaml")
        self._count += 1
        try:
            text = self._read(file) if self._count <= _MOST_FILES else ""
        except ConfigurationError:
            text = ""
        if not text:
            self.not_found.append(name)
            return {}
        if under is None and (said := _PACKAGE.match(text)):
            under = said[1]
        if under is None or under == "_group_":
            under = "" if ".." in name else name.rpartition("/")[0].lstrip("/").replace("/", ".")
            package = "" if name.startswith("/") else package
        if under.startswith("_global_"):
            package, under = "", under.removeprefix("_global_").removeprefix(".")
        return self.values(file, text, package + (f"{under}." if under not in ("", "_here_") else ""))


def _named(entry: object) -> tuple[str, str, str | None] | None:
    """Group, option and package of an entry of `defaults`; None where it names no file of its own."""
    group, option = next(iter(entry.items())) if isinstance(entry, dict) and len(entry) == 1 else ("", entry)
    group, option = str(group).removeprefix("optional "), str(option or "").removeprefix("optional ")
    if f"{group} {option}".lstrip().startswith("override ") or not option:
        return None
    group, _, of_group = group.partition("@")
    option, _, of_option = option.partition("@")
    return group, option, of_group or of_option or None


def _tree(path: Path, text: str) -> Mapping[object, object]:
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path} is not YAML: {' '.join(str(error).split())[:300]}") from error
    except (RecursionError, ValueError, OverflowError) as error:
        raise ConfigurationError(
            f"{path} is nested or numbered as no configuration is: give the file that the program reads"
        ) from error
    if not isinstance(tree, dict):
        raise ConfigurationError(f"{path} holds no keys: give the configuration or the launch script of the program")
    return tree


def _flat(
    path: Path, tree: Mapping[object, object], prefix: str, depth: int, count: Iterator[int]
) -> Iterator[tuple[str, object]]:
    """Leaves; empty groups are some. Names with dots are as good as groups."""
    if depth > _MOST_DEPTH:
        raise ConfigurationError(f"{path} is nested more deeply than any configuration: give the file that the program reads")
    for name, value in tree.items():
        if next(count, None) is None:
            raise ConfigurationError(f"{path} has more than {_MOST_VALUES:,} values: give the file that the program reads")
        key = f"{prefix}{name}"
        if isinstance(value, dict) and value:
            yield from _flat(path, value, f"{key}.", depth + 1, count)
        else:
            yield key, value
