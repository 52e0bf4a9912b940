"""What a person asked to have evaluated."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Request:
    protocol: str = ""
    """Name or file of one; empty: the configuration alone says how."""
    model: str = ""
    """A version of the run, or a folder; empty: `api`, or what the configuration names."""
    api: str = ""
    """Name of an endpoint's model."""
    base_url: str = ""
    key_env: str = ""
    run_dir: Path | None = None
    recipe: str | None = None
    tasks: Path | None = None
    trained_on: tuple[Path, ...] = ()
    """Task files of the model's training; empty: those of the run, if there is one."""
    repeat: int | None = None
    seed: int | None = None
    """Of a protocol's seeds: this one alone."""
    out: Path | None = None
    submission: Path | None = None
    """Folder for what Online-Mind2Web takes."""
    overrides: tuple[str, ...] = ()
