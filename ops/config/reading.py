"""Reads YAML files of people: whatever stands in one becomes a value or a sentence, quickly and in little memory."""

from pathlib import Path
from typing import Any

import yaml

from schemas.errors import ConfigurationError

MAX_BYTES = 1024 * 1024
"""More than any configuration has."""
_MAX_VALUES = 100_000
"""With what aliases stand for: a few lines that each name the one before ten times would be gigabytes."""
_MAX_DEPTH = 50
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path, what: str = "the configuration file") -> Any:
    """What the file says, in the types of YAML's safe loader.

    Args:
        what: it is, at the beginning of a sentence.

    Raises:
        ConfigurationError: it cannot be read, is no YAML, or is larger or deeper than a file of a person's is.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # a path may hold what no path can
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"{what} {path} cannot be read ({reason}): write the path of a .yaml file") from error
    if len(raw) > MAX_BYTES:
        raise ConfigurationError(f"{what} {path} is larger than 1 MiB: write the path of a .yaml file with settings")
    try:
        text = raw.decode("utf-8-sig")
        _require_bounded(path, text)
        return yaml.load(text, _LOADER)  # noqa: S506 - one of the two safe ones
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is no YAML: it is not UTF-8 text (byte {error.start}): save it as such") from error
    except (yaml.YAMLError, ValueError) as error:
        # Of a date or number that there is not, YAML's reader raises Python's own error.
        raise ConfigurationError(f"{path} is no YAML: {_where(error)}: correct it there") from error


def _require_bounded(path: Path, text: str) -> None:
    sizes: dict[str, int] = {}
    """Values of what an anchor stands before."""
    opened: list[tuple[str | None, int]] = []
    """Anchors of the lists and groups around this place, and how many values stood before each."""
    count = 0
    for event in yaml.parse(text, _LOADER):
        count += sizes.get(event.anchor, 1) if isinstance(event, yaml.AliasEvent) else 1
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, count))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            sizes |= {anchor: count - before} if anchor else {}
        if len(opened) > _MAX_DEPTH:
            raise ConfigurationError(f"{path}: lists and keys stand too deep in each other: write fewer levels")
        if count > _MAX_VALUES:
            raise ConfigurationError(
                f"{path} has more than {_MAX_VALUES} values: write the path of a .yaml file with settings"
            )


def _where(error: Exception) -> str:
    """On one line."""
    mark = getattr(error, "problem_mark", None)
    if not isinstance(error, yaml.MarkedYAMLError) or mark is None:
        return " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
