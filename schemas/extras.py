"""Packages that only some commands need: a sentence instead of an import error."""

from importlib.util import find_spec

from schemas.errors import ConfigurationError


def require_extra(package: str, extra: str) -> None:
    """Raises `ConfigurationError` when `package`, which comes with an extra of Millrace, is not installed."""
    if find_spec(package) is None:
        raise ConfigurationError(
            f"this needs {package}: pip install 'millrace[{extra}]', or in the clone pip install -e '.[{extra}]'"
        )
