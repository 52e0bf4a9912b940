"""Makes values of the type that our keys take, where that changes nothing: 1e-6 from its text, 1 from 1.0. Pure."""

from typing import Any, get_args, get_type_hints

from ops.config.elsewhere.row import IN_FILE
from ops.config.elsewhere.written import number, text, truth, whole
from schemas.config import Config


def typed(key: str, value: object) -> object:
    """Raises `Unfit`."""
    hint = _hint(key)
    kinds = get_args(hint) or (hint,)
    if value is None or hint is None or isinstance(value, list | tuple | dict):
        return value
    if bool in kinds:
        return truth(value)
    if int in kinds:
        return whole(value)
    if float in kinds:
        return number(value)
    if str in kinds:
        return text(value)
    return value


def _hint(key: str) -> Any:
    """Of a key's field; None below a table of free names and in the DeepSpeed file."""
    if key.startswith(IN_FILE):
        return None
    kind: Any = Config
    for name in key.split("."):
        hints = get_type_hints(kind) if isinstance(kind, type) else {}
        if name not in hints:
            return None
        kind = hints[name]
    return kind
