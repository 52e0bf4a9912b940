"""A version of a run becomes a model folder, or a sentence says why not."""

from pathlib import Path

import pytest
import torch

from ops.run.folder import RunFolder
from ops.run.model_export import export_model
from schemas.config import Config
from schemas.errors import CheckpointCorrupt, ConfigurationError
from schemas.policy_config import PolicyConfig
from tests.support.training.small_engine import SmallEngine
from trainer.versions.checkpoints import TrainerState, write_checkpoint


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run with versions 1 and 3 on disk."""
    base, run = tmp_path / "base", RunFolder(tmp_path / "run")
    base.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (base / name).write_text(f"{{}} {name}")
    run.create(Config(save_path=str(run.path), policy_config=PolicyConfig(base_model=str(base))))
    for version in (1, 3):
        engine = SmallEngine(version, torch.full((4,), float(version)))
        state = TrainerState(version=version, num_trajectories=0, num_updates=version)
        write_checkpoint(run.checkpoints, base=base, engine=engine, state=state)
    return run


def test_the_newest_or_the_chosen_version_without_what_only_training_needs(run: RunFolder, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    assert export_model(run, tmp_path / "out/newest") == 3
    assert export_model(run, tmp_path / "out/first", 1) == 1
    assert export_model(run, tmp_path / "out/base", 0) == 0
    names = {"config.json", "tokenizer.json", "model.safetensors"}
    assert {path.name for path in (tmp_path / "out").rglob("*")} == names | {"newest", "first", "base"}
    assert load_file(tmp_path / "out/newest/model.safetensors")["a.weight"][0] == 3
    assert load_file(tmp_path / "out/first/model.safetensors")["a.weight"][0] == 1
    assert (tmp_path / "out/base/model.safetensors").read_text() == "{} model.safetensors"


def test_what_is_wrong_is_said(run: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(ConfigurationError, match="holds no run"):
        export_model(RunFolder(tmp_path / "nothing"), out)
    with pytest.raises(ConfigurationError, match=r"write a version that is kept \(0, 1, 3\)"):
        export_model(run, out, 2)
    with pytest.raises(ConfigurationError, match="does not exist yet"):
        export_model(run, tmp_path / "base", 1)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        export_model(run, tmp_path / "file/out", 1)
    weights = next(run.checkpoints.glob("v000003-*")) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    with pytest.raises(CheckpointCorrupt, match="is not what was written"):
        export_model(run, out)
    assert not out.exists()
    assert not list(tmp_path.glob(".*"))


def test_a_run_without_a_trained_version(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    run.create(Config(save_path=str(run.path), policy_config=PolicyConfig(base_model=str(tmp_path))))
    with pytest.raises(ConfigurationError, match="--version 0 for the model that it began from"):
        export_model(run, tmp_path / "out")
