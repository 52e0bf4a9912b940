"""Files of bounded size: what they are called, and that everything is found again."""

from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import load_file

from schemas.errors import CheckpointCorrupt
from trainer.model import tensor_files
from trainer.model.tensor_files import read_tensors, write_tensors, write_weights

LAYERS = [{f"{layer}.{name}": torch.full((10,), float(layer)) for name in ("a", "b")} for layer in range(3)]


def test_a_small_model_is_one_file(tmp_path: Path) -> None:
    write_weights(tmp_path, LAYERS)
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]
    assert sorted(load_file(tmp_path / "model.safetensors")) == ["0.a", "0.b", "1.a", "1.b", "2.a", "2.b"]


def test_a_large_one_is_several_and_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_files, "_FILE_BYTES", 100)
    write_weights(tmp_path, LAYERS)
    parts = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
    assert sorted(file.name for file in tmp_path.iterdir()) == [*parts, "model.safetensors.index.json"]
    index = msgspec.json.decode((tmp_path / "model.safetensors.index.json").read_bytes())
    assert index["weight_map"] == {name: parts[number] for number, layer in enumerate(LAYERS) for name in layer}
    assert {name for part in parts for name in load_file(tmp_path / part)} == set(index["weight_map"])


def test_a_tensor_larger_than_a_file_has_one_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_files, "_FILE_BYTES", 10)
    assert len(set(write_tensors(tmp_path, "critic", LAYERS).values())) == 6
    found = dict(read_tensors(tmp_path, "critic"))
    assert all(torch.equal(found[name], tensor) for layer in LAYERS for name, tensor in layer.items())


def test_what_several_files_hold_is_apart_from_those_whose_names_begin_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensor_files, "_FILE_BYTES", 10)
    write_tensors(tmp_path, "critic", LAYERS)
    write_tensors(tmp_path, "critic-optimizer-rank00000", [{"num_updates": torch.ones(3), "num_steps": torch.ones(3)}])
    assert dict(read_tensors(tmp_path, "critic")).keys() == {name for layer in LAYERS for name in layer}


def test_what_is_gone_or_damaged_is_named(tmp_path: Path) -> None:
    write_tensors(tmp_path, "critic-optimizer-rank00000", LAYERS)
    with pytest.raises(CheckpointCorrupt, match=r"critic\.safetensors is missing"):
        list(read_tensors(tmp_path, "critic"))
    (tmp_path / "critic.safetensors").write_bytes(b"nonsense")
    with pytest.raises(CheckpointCorrupt, match=r"critic\.safetensors cannot be read"):
        list(read_tensors(tmp_path, "critic"))
