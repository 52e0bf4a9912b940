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
