"""Requires something of a configuration, in a sentence to a person."""

from schemas.errors import ConfigurationError


def require(holds: bool, sentence: str) -> None:
    """Raises `ConfigurationError` with the sentence, which says what to write, when it does not hold."""
    if not holds:
        raise ConfigurationError(sentence)
