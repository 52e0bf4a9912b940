"""`millrace export-model`: one version of a run as an ordinary model folder, for transformers and vLLM."""

import shutil
from pathlib import Path

from rich.console import Console

from ops.evaluate import checkpoint_folder
from ops.run_folder import RunFolder
from schemas.errors import ConfigurationError
from trainer.checkpoints import require_intact, version_of

_ADAPTERS = "adapter_config.json"


async def main(run_dir: Path, out: Path, version: int | None) -> int:
    exported = export_model(RunFolder(run_dir), out, version)
    Console().print(f"version {exported} is in {out}", soft_wrap=True, highlight=False)
    return 0


def export_model(run: RunFolder, out: Path, version: int | None = None) -> int:
    """Writes `out` whole or not at all: without what only training needs, adapters merged. Returns the version.

    Args:
        version: None: the newest that is on disk.

    Raises:
        ConfigurationError: there is no run or no such version, `out` exists, or it cannot be written.
        CheckpointCorrupt: the version is not what was written.
    """
    base = Path(run.load().policy_config.base_model)
    version = _newest(run) if version is None else version
    folder = checkpoint_folder(run, str(version))
    if out.exists():
        raise ConfigurationError(f"{out} exists: give --out a folder that does not exist yet")
    if version > 0:
        require_intact(folder)
    partial = out.with_name(f".{out.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _fill(partial, folder, base)
        partial.rename(out)
    except OSError as error:
        raise ConfigurationError(f"{out} cannot be written ({error.strerror}): choose another folder") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return version


def _newest(run: RunFolder) -> int:
    versions = [version_of(folder) for folder in run.checkpoints.glob("v[0-9]*-*")]
    if not versions:
        raise ConfigurationError(
            f"{run.path} has no trained version on disk: wait for one, or give --version 0 for the model that it began from"
        )
    return max(versions)


def _fill(partial: Path, folder: Path, base: Path) -> None:
    if (folder / _ADAPTERS).is_file():
        from trainer.adapters import merged_weights
        from trainer.checkpoints import model_files
        from trainer.engine_state import write_weights

        write_weights(partial, merged_weights(folder))
        files = model_files(base)
    else:
        files = [file for file in folder.iterdir() if file.is_file()]
    for file in files:
        shutil.copyfile(file, partial / file.name)
