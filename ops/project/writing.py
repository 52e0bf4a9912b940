"""Writes a new project: the files of template/, and the model that their configuration names."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bus.child_process import run_process
from ops.processes.role_process import millrace_environment
from schemas.errors import ConfigurationError

TEMPLATE = Path(__file__).parent / "template"
_COMPILED = shutil.ignore_patterns("__pycache__")


async def write_project(folder: Path) -> None:
    """Fills a folder that is empty or not there yet, with everything or with nothing.

    Raises:
        ConfigurationError: it holds something or cannot be written, or the model cannot be made.
    """
    with _filled(folder) as made:
        shutil.copytree(TEMPLATE, made, dirs_exist_ok=True, ignore=_COMPILED, copy_function=shutil.copyfile)
        await _make_model(made)


@contextmanager
def _filled(folder: Path) -> Iterator[Path]:
    """Gives a folder beside it, whose content is moved there when the block ends without an error."""
    try:
        _require_empty(folder)
        parent = folder.resolve().parent
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".millrace-new-", dir=parent) as beside:
            yield Path(beside)
            folder.mkdir(exist_ok=True)
            for entry in sorted(Path(beside).iterdir()):
                entry.rename(folder / entry.name)
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be written ({error.strerror}): choose another folder") from error


def _require_empty(folder: Path) -> None:
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ConfigurationError(f"{folder} is not an empty folder: write the name of a new one")


async def _make_model(project: Path) -> None:
    made = await run_process(
        (sys.executable, "-P", "-m", "ops.project.clicking_model", str(project)), env=millrace_environment()
    )
    if made.returncode:
        said = made.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {made.returncode}"]
        raise ConfigurationError(f"the project's model cannot be made ({said[-1]}): millrace doctor says what is missing")
