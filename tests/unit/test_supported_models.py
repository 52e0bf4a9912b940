"""Which models can be trained is known by their config.json, before anything is loaded."""

import json
from pathlib import Path

import pytest

from schemas.errors import ConfigurationError
from trainer.model.supported import GRIDS, TILES, require_trainable


def described(folder: Path, **description: object) -> Path:
    (folder / "config.json").write_text(json.dumps(description))
    return folder


@pytest.mark.parametrize("kind", [*GRIDS, *TILES])
def test_every_family_is_trained(tmp_path: Path, kind: str) -> None:
    require_trainable(described(tmp_path, model_type=kind))
    require_trainable(described(tmp_path, model_type=kind, text_config={"layer_types": ["full_attention"]}))


def test_others_and_their_layers_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"type 'llava' cannot be trained here: .* one of glm4v, internvl"):
        require_trainable(described(tmp_path, model_type="llava"))
    with pytest.raises(ConfigurationError, match="sliding_attention layers cannot be trained"):
        require_trainable(described(tmp_path, model_type="qwen3_vl", text_config={"layer_types": ["sliding_attention"]}))


@pytest.mark.parametrize("text", ["", "[]", '{"model_type": "qwen3_vl", "text_config": 3}', "\udcff"])
def test_what_describes_no_model_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigurationError, match=r"config\.json cannot be read as a model's configuration"):
        require_trainable(tmp_path)
