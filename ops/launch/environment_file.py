"""Environment and secrets of a node by file: KEY=VALUE a line, readable by its owner alone, never printed."""

import re
from pathlib import Path

from schemas.errors import ConfigurationError
from schemas.private_file import read_private

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z")
_QUOTES = ("'", '"')


def read_environment(path: Path) -> dict[str, str]:
    """Empty lines and those that begin with `#` are left out; one pair of quotes around a value is taken off.

    Raises:
        ConfigurationError: the file is missing or no text, others may read it, or a line (named by its number alone) is no
            KEY=VALUE.
    """
    values = {}
    for number, line in enumerate(read_private(path).split("\n"), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        found = _LINE.match(text)
        if found is None or "\0" in text:
            raise ConfigurationError(f"{path}, line {number}: write KEY=VALUE")
        value = found[2].strip()
        values[found[1]] = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in _QUOTES else value
    return values
