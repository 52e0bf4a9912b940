"""Loads a person's Python modules, named as in an import or by the path of a .py file: each at most once in a process."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from schemas.errors import ConfigurationError


def load(module: str) -> ModuleType:
    """The module of that name, or of that path.

    Raises:
        ConfigurationError: there is none, or it fails while it is imported; the message names it with the cause.
    """
    try:
        return _of_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
    except Exception as error:
        raise ConfigurationError(
            f"judge_config.modules: {module} cannot be imported: {type(error).__name__}: {error}. "
            "Write the name of a module on the Python path, or the path of a .py file"
        ) from error


def _of_file(path: Path) -> ModuleType:
    path = path.resolve(strict=True)
    name = f"millrace_file:{path}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
