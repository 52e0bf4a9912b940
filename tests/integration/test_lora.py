"""Adapters on real DeepSpeed, peft and a real tiny model: only they change, and nothing of them is lost on the way."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import peft
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForImageTextToText

from ops.run.folder import RunFolder
from ops.run.models import whole_model
from schemas.errors import CheckpointCorrupt, ConfigurationError
from schemas.lora_config import LANGUAGE_LAYERS, SCREENSHOT_LAYERS, LoraConfig
from tests.support.agents import tiny_models
from tests.support.training.lora_runs import LORA, adapted, samples_of
from tests.support.training.trainer_runs import BATCH, played, published, trainer
from tests.support.training.trainer_world import PlainModel, settings
from trainer.engine.training_engine import open_engine
from trainer.imitation import cloning_items
from trainer.model.adapter_folder import base_of
from trainer.model.adapters import without_adapters
from trainer.samples import Sample
from trainer.versions.checkpoints import TrainerState, folder_of, holds_optimizer, write_checkpoint

pytestmark = [
    pytest.mark.integration,
    # torch's own wrappers under ZeRO-3 warn about the names that DeepSpeed calls.
    pytest.mark.filterwarnings("ignore:.*torch.distributed.*is deprecated:FutureWarning"),
]
STATE = TrainerState(version=1, num_trajectories=0, num_updates=0, replay=())


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return tiny_models.build(tmp_path_factory.mktemp("model"), seed=1)


@pytest.fixture(scope="module")
def samples(base: Path) -> list[Sample]:
    return samples_of(base, 4)


@pytest.fixture(scope="module")
def trained(base: Path, samples: list[Sample], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[np.ndarray]]:
    """A checkpoint of three steps, and the engine's own log-probabilities there."""
    with open_engine(base, settings=adapted()) as engine:
        losses = [engine.train(cloning_items(samples)).loss for _ in range(3)]
        assert losses[2] < losses[1] < losses[0]
        written, _ = write_checkpoint(tmp_path_factory.mktemp("out"), base=None, engine=engine.files(), state=STATE)
        return written, engine.completion_logprobs(samples)


def test_fresh_adapters_change_nothing_and_only_they_are_trained(base: Path, samples: list[Sample]) -> None:
    frozen = load_file(base / "model.safetensors")
    with open_engine(base, settings=settings()) as engine:
        expected = engine.completion_logprobs(samples)
    with open_engine(base, settings=adapted()) as engine:
        begun = engine.completion_logprobs(samples)
        engine.train(cloning_items(samples))
        changed = engine.completion_logprobs(samples)
        with without_adapters(engine.model):
            reference = engine.completion_logprobs(samples)
        ours = {name.replace(".base_layer", ""): weight for name, weight in engine.model.state_dict().items()}
    assert all(np.array_equal(one, other) for one, other in zip(begun, expected, strict=True))
    assert all(np.array_equal(one, other) for one, other in zip(reference, expected, strict=True))
    assert all(np.abs(one - other).max() > 1e-4 for one, other in zip(changed, expected, strict=True))
    assert all(torch.equal(ours[name], weight) for name, weight in frozen.items()), "the base is unchanged, bit for bit"


@pytest.mark.parametrize(("stage", "dropout"), [(1, 0.0), (2, 0.2), (3, 0.2)])
def test_saved_adapters_continue_exactly(
    base: Path, samples: list[Sample], tmp_path: Path, stage: int, dropout: float
) -> None:
    chosen = adapted(stage, replace(LORA, dropout=dropout))
    items = cloning_items(samples)
    with open_engine(base, settings=chosen) as engine:
        engine.train(items)
        folder, _ = write_checkpoint(tmp_path, base=None, engine=engine.files(), state=STATE)
        with without_adapters(engine.model):
            engine.completion_logprobs(samples)  # must leave no trace
        expected = [engine.train(items) for _ in range(2)]
    with open_engine(folder, settings=chosen, resume=folder) as engine:
        assert [engine.train(items) for _ in range(2)] == expected


def test_adapters_begin_anew_as_the_base_model(
    trained: tuple[Path, list[np.ndarray]], base: Path, samples: list[Sample], tmp_path: Path
) -> None:
    """What training publishes when it returns to version 0."""
    with open_engine(trained[0], settings=adapted(), resume=trained[0]) as engine:
        written, _ = write_checkpoint(tmp_path, base=None, engine=engine.fresh_adapters(), state=STATE)
        with without_adapters(engine.model):
            expected = engine.completion_logprobs(samples)
    assert base_of(written) == base
    assert not holds_optimizer(written)
    with open_engine(written, settings=adapted()) as engine:
        assert engine.num_updates == 0
        assert all(map(np.array_equal, engine.completion_logprobs(samples), expected))
        losses = [engine.train(cloning_items(samples)).loss for _ in range(3)]
        assert losses[2] < losses[1] < losses[0], "both halves of an adapter can learn"


def test_what_is_dropped_depends_on_the_step(base: Path, samples: list[Sample]) -> None:
    items = cloning_items(samples)
    idle = replace(adapted(1, replace(LORA, dropout=0.5)).algorithm, learning_rate=1e-12)
    losses = {}
    for seed in (0, 1):
        chosen = adapted(1, replace(LORA, dropout=0.5), seed=seed)
        with open_engine(base, settings=replace(chosen, algorithm=idle)) as engine:
            # B is zero at first, so that what goes into it shows only in gradients.
            losses[seed] = [engine.train(items).grad_norm for _ in range(2)]
    assert len({*losses[0], *losses[1]}) == 4


def test_a_checkpoint_is_small_and_loads_in_transformers_and_peft(
    base: Path, samples: list[Sample], trained: tuple[Path, list[np.ndarray]]
) -> None:
    folder, ours = trained
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert names == [
        "adapter_config.json",
        "adapter_model.safetensors",
        "trainer/optimizer-rank00000.safetensors",
        "trainer/state.msgpack",
    ]
    assert base_of(folder) == base.resolve()
    assert len(load_file(folder / "adapter_model.safetensors")) == 2 * (7 * 2 + 4 * 2 + 2 * 2)
    theirs = PlainModel(base)
    bare = theirs.model
    theirs.model = peft.PeftModel.from_pretrained(bare, str(folder)).eval()
    _agree(theirs, samples, ours, base)
    theirs.model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
    _agree(theirs, samples, ours, base)


def test_merged_it_is_an_ordinary_model(
    base: Path, samples: list[Sample], trained: tuple[Path, list[np.ndarray]], tmp_path: Path
) -> None:
    folder, ours = trained
    run = RunFolder(tmp_path)
    whole_folder = whole_model(run, folder)
    assert whole_model(run, folder) == whole_folder, "merged once"
    whole, plain = load_file(whole_folder / "model.safetensors"), load_file(base / "model.safetensors")
    assert {name: weight.dtype for name, weight in whole.items()} == {name: weight.dtype for name, weight in plain.items()}
    _agree(PlainModel(whole_folder), samples, ours, base)


def _agree(plain: PlainModel, samples: list[Sample], ours: list[np.ndarray], base: Path) -> None:
    from trainer.model.model_folder import suppressed_tokens

    for sample, expected in zip(samples, ours, strict=True):
        prompt, answer = np.split(sample.tokens, [sample.num_prompt])
        screenshots = [tiny_models.screenshot(sample.ref.step).data]
        found = plain.logprobs(prompt.tolist(), answer.tolist(), screenshots, suppressed_tokens(base))
        np.testing.assert_allclose(found, expected, atol=2e-5)


def test_training_goes_on_only_with_the_adapters_it_was_begun_with(
    base: Path, trained: tuple[Path, list[np.ndarray]], tmp_path: Path
) -> None:
    folder, _ = trained
    for other in (replace(LORA, rank=8), replace(LORA, alpha=9), replace(LORA, targets=("q_proj",)), LoraConfig()):
        with (
            pytest.raises(ConfigurationError, match=r"trainer_config\.lora says"),
            open_engine(folder, settings=adapted(1, other)),
        ):
            pass
    with (
        pytest.raises(ConfigurationError, match="holds a whole model"),
        open_engine(base, settings=adapted(), resume=base),
    ):
        pass
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "adapter_config.json").write_bytes((folder / "adapter_config.json").read_bytes())
    (damaged / "adapter_model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(CheckpointCorrupt, match="adapter_model"), open_engine(damaged, settings=adapted()):
        pass


@pytest.mark.anyio
async def test_a_restarted_run_publishes_the_same_adapters(base: Path, tmp_path: Path) -> None:
    plain, ends = PlainModel(base), {}
    for name, stops in {"whole": (2,), "halved": (1, 2)}.items():
        bus = await played(plain, base, 2 * BATCH)
        for until in stops:
            async with trainer(bus, base, tmp_path / name, num_iterations=until, lora=LORA) as worker:
                await worker.run()
        versions = await published(bus)
        assert [checkpoint.base for checkpoint in versions] == [None, 0, 0]
        assert versions[1].metrics["mismatch"] < 1e-4
        ends[name] = (folder_of(versions[2].uri) / "adapter_model.safetensors").read_bytes()
    assert ends["whole"] == ends["halved"]


@pytest.mark.anyio
async def test_a_base_that_was_changed_is_noticed(tmp_path: Path) -> None:
    base = tiny_models.build(tmp_path / "base", seed=2)
    bus = await played(PlainModel(base), base, BATCH)
    async with trainer(bus, base, tmp_path, num_iterations=1, lora=LORA) as worker:
        await worker.run()
    tiny_models.build(base, seed=3)
    with pytest.raises(CheckpointCorrupt, match="not what was written"):
        async with trainer(bus, base, tmp_path, num_iterations=2, lora=LORA) as worker:
            await worker.run()


def test_every_layer_of_both_lists_exists(base: Path) -> None:
    model = AutoModelForImageTextToText.from_pretrained(base)
    linear = {name.rpartition(".")[2] for name, layer in model.named_modules() if isinstance(layer, torch.nn.Linear)}
    assert linear - {"lm_head"} == {*LANGUAGE_LAYERS, *SCREENSHOT_LAYERS}
