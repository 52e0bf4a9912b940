"""Reads a file of another program: YAML, or a launch script as text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ops.config.elsewhere.script_file import script_values
from ops.config.elsewhere.yaml_file import looks_like_yaml, yaml_values
from schemas.errors import ConfigurationError

_MOST_BYTES = 2 * 2**20
_YAML, _SCRIPT = (".yaml", ".yml"), (".sh", ".bash", ".slurm", ".sbatch")


@dataclass(frozen=True, slots=True)
class Read:
    """Values by their full keys, in the file's order."""

    values: dict[str, object]
    removed: frozenset[str] = frozenset()
    conditional: frozenset[str] = frozenset()
    unread: Mapping[str, str] = field(default_factory=dict)
    """What may hold settings and was not understood, each with what to do about it."""


def read_file(path: Path, is_known: Callable[[str], bool] = lambda _: True) -> Read:
    """Nothing of it is run. Of a script with several commands, the one with the most known keys.

    Raises:
        ConfigurationError: it is not there, cannot be read, is no text, or holds no keys.
    """
    text = _text(path)
    if path.suffix in _YAML or (path.suffix not in _SCRIPT and looks_like_yaml(text)):
        return Read(yaml_values(path, text, _text))
    script = script_values(text, is_known)
    if not script.values and not script.removed:
        raise ConfigurationError(
            f"{path} holds no settings such as data.train_batch_size=64: give the program's YAML file or its launch script"
        )
    return Read(script.values, frozenset(script.removed), frozenset(script.conditional), script.unread)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read ({error.strerror}): give the path of a YAML file or a script"
        ) from error
    if len(data) > _MOST_BYTES:
        raise ConfigurationError(
            f"{path} has more than {_MOST_BYTES // 2**20} MiB: give the program's YAML file or its script"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is no text: give the program's YAML file or its script") from error
    if "\x00" in text:
        raise ConfigurationError(f"{path} is no text: give the program's YAML file or its script")
    return text.replace("\x01", "")
