"""Files with secrets: readable by their owner alone."""

import stat
from pathlib import Path

from schemas.errors import ConfigurationError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def require_private(path: Path) -> None:
    """Raises `ConfigurationError` when a file with credentials is missing or others may read it."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise ConfigurationError(f"the credentials {path} cannot be read ({error.strerror})") from error
    if mode & _OTHERS:
        raise ConfigurationError(f"{path} can be read by others: chmod 600 {path}")


def read_private(path: Path) -> str:
    """Its text. Raises `ConfigurationError`, which tells nothing of it, also when it is none."""
    require_private(path)
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text (byte {error.start}): save it as such") from None
