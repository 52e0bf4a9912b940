"""A simulated policy's weights are broken while a file says so: for drills, tests and benchmarks, from outside its process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def says_broken(run_folder: Path, worker: str) -> Path:
    """While this file is there, the worker cannot load a version."""
    return run_folder / "broken-weights" / worker


@contextmanager
def broken_weights(run_folder: Path, worker: str) -> Iterator[None]:
    """The worker cannot load a version while the context is open."""
    file = says_broken(run_folder, worker)
    file.parent.mkdir(exist_ok=True)
    file.touch()
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
