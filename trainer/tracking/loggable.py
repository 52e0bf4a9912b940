"""A run's configuration as metrics' companion: without anything secret. Pure."""

import re
from collections.abc import Mapping

_SECRET = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)
_NAMES_A_VARIABLE = re.compile(r"_env_var$")
_USER = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY = re.compile(r"(://[^\s?#]*)[?#]\S*")


def loggable(tree: Mapping[str, object]) -> dict[str, object]:
    """The tree without texts under keys that sound secret, and without users, passwords and queries in addresses.

    Names of environment variables are no secrets; numbers, such as `max_new_tokens`, neither.
    """
    return {name: _shown(value) for name, value in tree.items() if not _hidden(name, value)}


def _hidden(name: str, value: object) -> bool:
    return isinstance(value, str | list | tuple) and bool(_SECRET.search(name)) and not _NAMES_A_VARIABLE.search(name)


def _shown(value: object) -> object:
    match value:
        case str():
            return _QUERY.sub(r"\1", _USER.sub("", value))
        case Mapping():
            return loggable(value)
        case list() | tuple():
            return [_shown(part) for part in value]
        case _:
            return value
