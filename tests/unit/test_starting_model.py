"""What version 0 is: a model, or a checkpoint of another run, for trainer and policies alike."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agents import starting_weights, vllm_engine
from ops.config.loading import load_config
from ops.roles import policy
from ops.run.base_models import pinned, starting_model
from schemas.errors import ConfigurationError
from schemas.policy_config import PolicyConfig
from trainer.versions.checkpoints import hash_model


def folder_with(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def test_a_checkpoint_comes_before_the_base_model(tmp_path: Path) -> None:
    base = folder_with(tmp_path / "base", "config.json")
    checkpoint = folder_with(tmp_path / "v000003-abcdef01", "config.json")
    assert starting_model(PolicyConfig(base_model=str(base))) == base
    policy = PolicyConfig(base_model=str(base), checkpoint_path=str(checkpoint))
    assert starting_model(policy) == checkpoint
    assert pinned(policy) == str(checkpoint)


@pytest.mark.parametrize("key", ["base_model", "checkpoint_path"])
def test_a_folder_that_is_no_model_is_said_by_its_key(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigurationError, match=f"policy_config.{key} is .*: write the path of a model folder"):
        starting_model(load_config("default", [f"policy_config.{key}={tmp_path}"]).policy_config)


def test_a_checkpoint_is_announced_without_its_trainers_state(tmp_path: Path) -> None:
    folder_with(tmp_path, "config.json", "model.safetensors", "trainer/optimizer.safetensors", "trainer/state.msgpack")
    assert [file.path for file in hash_model(tmp_path)] == ["config.json", "model.safetensors"]


@pytest.mark.parametrize(
    ("there", "announced"),
    [
        (
            ("config.json", "model-1.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "original/a.pth"),
            ["config.json", "model-1.safetensors", "model.safetensors.index.json"],
        ),
        (("config.json", "pytorch_model.bin"), ["config.json", "pytorch_model.bin"]),
    ],
)
def test_the_same_weights_are_announced_once(tmp_path: Path, there: tuple[str, ...], announced: list[str]) -> None:
    assert [file.path for file in hash_model(folder_with(tmp_path, *there))] == announced


@pytest.mark.anyio
@pytest.mark.parametrize(("mode", "rank", "awaited"), [("async", 8, True), ("async", 0, False), ("rollout", 8, False)])
async def test_a_policy_awaits_the_model_that_adapters_are_trained_on(
    monkeypatch: pytest.MonkeyPatch, mode: str, rank: int, awaited: bool
) -> None:
    asked: list[bool] = []

    async def version_0(*_: object, adapters: bool) -> tuple[Path, int]:
        asked.append(adapters)
        return Path(), 0

    monkeypatch.setattr(starting_weights, "starting_weights", version_0)
    monkeypatch.setattr(vllm_engine, "VllmEngine", lambda *_, **__: None)
    config = load_config("default", [f"feeder_config.mode={mode}", f"trainer_config.lora.rank={rank}"])
    run = SimpleNamespace(context=SimpleNamespace(bus=None, subjects=None, worker="policy-1"), config=config)
    await policy._engine(cast(Any, run), cast(Any, None))
    assert asked == [awaited]
