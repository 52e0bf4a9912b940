"""Frozen parts of a model: which parameters they are in every family, that they stay as they are, and are published."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForImageTextToText, PreTrainedModel

from schemas.errors import ConfigurationError
from schemas.lora_config import LoraConfig
from schemas.trainer_config import TrainerConfig
from tests.unit.test_throughput import CONFIG
from trainer.model.frozen import freeze, part_of
from trainer.model.layers import gathered_layers, trained_parameters

FAMILIES: dict[str, dict[str, Any]] = {
    "qwen3_vl": {"vision_config": {"depth": 2, "deepstack_visual_indexes": [0]}},
    "qwen2_5_vl": {"vision_config": {"depth": 2}},
    "qwen3_5": {"vision_config": {"depth": 2}},
    "glm4v": {"vision_config": {"depth": 2}},
    "internvl": {"vision_config": {"num_hidden_layers": 2}},
}


def tiny() -> PreTrainedModel:
    torch.manual_seed(0)
    model: PreTrainedModel = AutoModelForImageTextToText.from_config(CONFIG)
    return model


@pytest.mark.parametrize("family", FAMILIES)
def test_frozen_are_all_but_the_language_model(family: str) -> None:
    config = AutoConfig.for_model(family, **FAMILIES[family])
    config.text_config.num_hidden_layers = 1
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(config)
    names = [name for name, _ in model.named_parameters()]
    assert {part_of(name) for name in names} == {"", "vision", "projector"}
    freeze(model, ("vision", "projector"), folder=Path("m"))
    trained = [name for name, _ in trained_parameters(model)]
    assert trained == [name for name in names if name.startswith(("model.language_model.", "lm_head."))]


def test_frozen_bytes_stay_and_the_others_change() -> None:
    model = tiny()
    freeze(model, ("vision",), folder=Path("m"))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = torch.optim.AdamW([parameter for _, parameter in trained_parameters(model)], lr=0.1, weight_decay=0.1)
    sum((parameter - 1.0).square().sum() for _, parameter in trained_parameters(model)).backward()  # type: ignore[union-attr]
    optimizer.step()
    same = {name for name, parameter in model.named_parameters() if torch.equal(parameter, before[name])}
    vision = {name for name in before if part_of(name) == "vision"}
    assert same == vision
    assert len(optimizer.state) == len(before) - len(vision), "no state for what is frozen"


def test_what_is_frozen_is_published_in_its_place() -> None:
    model = tiny()
    freeze(model, ("vision", "projector"), folder=Path("m"))
    written = [name for layer in gathered_layers(model, keeps=True, frozen=True) for name in layer]
    assert written == [name for name, _ in model.named_parameters()]
    trained = [name for layer in gathered_layers(model, keeps=True) for name in layer]
    assert trained == [name for name in written if part_of(name) == ""]


def test_a_part_that_is_not_there_or_has_no_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"freeze names vision, and m has none"):
        freeze(torch.nn.Linear(2, 2), ("vision",), folder=Path("m"))
    with pytest.raises(ConfigurationError, match=r"freeze names 'visual': write some of vision, projector"):
        TrainerConfig(freeze=("visual",))
    with pytest.raises(ConfigurationError, match="where adapters are trained all weights"):
        TrainerConfig(freeze=("vision",), lora=LoraConfig(rank=4))
