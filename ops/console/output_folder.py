"""The folders that commands write for a person."""

from pathlib import Path

from schemas.errors import ConfigurationError


def make_output(folder: Path) -> Path:
    """Makes a folder and those above it, when they are not there yet.

    Raises:
        ConfigurationError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be made ({error.strerror}): choose another folder") from error
    return folder
