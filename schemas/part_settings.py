"""Gives a part its settings: its own parameters say which keys of a configuration it reads.

The settings of a class are the parameters that it is made with, those of a function its keyword-only ones:

    @loss("clipped")
    @dataclass(frozen=True, kw_only=True)
    class Clipped:
        clip_ratio_low: float = 0.2         reads objective_config.clip_ratio_low
"""

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any


def settings_of(made: Any) -> tuple[str, ...]:
    """Names of the settings of a function or class."""
    is_class = isinstance(made, type)
    parameters = inspect.signature(made).parameters.values()
    return tuple(each.name for each in parameters if is_class or each.kind is inspect.Parameter.KEYWORD_ONLY)


def configured(made: Any, settings: Mapping[str, object]) -> Any:
    """The class made with its settings, or the function with them filled in; what `settings` lacks keeps its default."""
    given = {name: settings[name] for name in settings_of(made) if name in settings}
    if isinstance(made, type):
        return made(**given)
    return partial(made, **given) if given else made
