"""The model folders of a run: which one per version means, and adapters as a whole model."""

from pathlib import Path

from ops.run.base_models import starting_model
from ops.run.folder import RunFolder
from schemas.errors import ConfigurationError
from trainer.model.adapter_folder import holds_adapters


def checkpoint_folder(run: RunFolder, checkpoint: str) -> Path:
    """The model folder that is meant by a version of the run or by a path.

    Raises:
        ConfigurationError: there is none; names the versions that there are. Or there is no run.
    """
    policy = run.load().policy_config
    if not checkpoint.isdigit():
        folder = Path(checkpoint).resolve()
    elif int(checkpoint) == 0:
        folder = starting_model(policy)
    else:
        folder = next(run.checkpoints.glob(f"v{int(checkpoint):06d}-*"), run.checkpoints / f"v{int(checkpoint):06d}")
    if not is_model(folder):
        kept = ", ".join(str(int(path.name[1:7])) for path in sorted(run.checkpoints.glob("v[0-9]*-*")))
        raise ConfigurationError(
            f"{folder} is not the folder of a model: write a version that is kept (0{', ' if kept else ''}{kept}) or a folder"
        )
    return folder


def is_model(folder: Path) -> bool:
    return (folder / "config.json").is_file() or holds_adapters(folder)


def whole_model(run: RunFolder, folder: Path) -> Path:
    """A checkpoint as a model that can be served by itself: adapters are merged with their base, once."""
    if not holds_adapters(folder):
        return folder
    from trainer.versions.merging import merge

    merged = run.path / "evaluations" / "merged" / folder.name
    if not merged.exists():
        merge(folder, merged)
    return merged
