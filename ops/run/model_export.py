"""Writes one version of a run as an ordinary model folder."""

import shutil
from pathlib import Path

from ops.run.folder import RunFolder
from ops.run.models import checkpoint_folder
from schemas.errors import ConfigurationError
from trainer.model.adapter_folder import holds_adapters
from trainer.versions.checkpoints import require_intact, version_of


def export_model(run: RunFolder, out: Path, version: int | None = None) -> int:
    """Writes `out` whole or not at all: without what only training needs, adapters merged. Returns the version.

    Args:
        version: None: the newest that is on disk.

    Raises:
        ConfigurationError: there is no run or no such version, `out` exists, or it cannot be written.
        CheckpointCorrupt: the version is not what was written.
    """
    run.load()
    version = _newest(run) if version is None else version
    folder = checkpoint_folder(run, str(version))
    if out.exists():
        raise ConfigurationError(f"{out} exists: give --out a folder that does not exist yet")
    if version > 0:
        require_intact(folder)
    try:
        _write(folder, out)
    except OSError as error:
        raise ConfigurationError(f"{out} cannot be written ({error.strerror}): choose another folder") from error
    return version


def _newest(run: RunFolder) -> int:
    versions = [version_of(folder) for folder in run.checkpoints.glob("v[0-9]*-*")]
    if not versions:
        raise ConfigurationError(
            f"{run.path} has no trained version on disk: wait for one, or give --version 0 for the model that it began from"
        )
    return max(versions)


def _write(folder: Path, out: Path) -> None:
    if holds_adapters(folder):
        from trainer.versions.merging import merge

        merge(folder, out)
        return
    partial = out.with_name(f".{out.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for file in folder.iterdir():
            if file.is_file():
                shutil.copyfile(file, partial / file.name)
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
