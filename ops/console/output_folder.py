"""The folders that commands write for a person."""

from pathlib import Path

from schemas.errors import ConfigurationError


def require_output(folder: Path) -> None:
    """Says before any work is done what `make_output` would say; makes nothing.

    Raises:
        ConfigurationError: the folder, or one above it, is a file.
    """
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        raise ConfigurationError(f"{folder} cannot be made ({there} is a file): choose another folder")


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


def make_room_for(file: Path) -> None:
    """Makes the folder that a file is to stand in.

    Raises:
        ConfigurationError: it cannot be made, or a folder has the file's name.
    """
    make_output(file.parent)
    if file.is_dir():
        raise ConfigurationError(f"{file} is a folder: name a file to write")
