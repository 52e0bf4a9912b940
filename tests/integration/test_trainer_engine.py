"""The training engine on real DeepSpeed and a real tiny model: exactness, ZeRO stages, ranks, state."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from deepspeed.accelerator.cpu_accelerator import CPU_Accelerator
from safetensors.torch import load_file
from transformers import AutoModelForImageTextToText, AutoProcessor

from schemas.errors import ConfigurationError, TrainerError
from schemas.ids import EpisodeId, PolicyVersion
from schemas.messages import Action, ActionKind, StepRequest, VersionSpan
from tests.support.agents import tiny_models
from tests.support.training.earlier_engines import watch_earlier_engines
from tests.support.training.rank_processes import run_ranks
from tests.support.training.trainer_world import PlainModel, completion, narrow, ref, settings, small
from trainer.engine import models
from trainer.engine.dealing import deal
from trainer.engine.held_state import open_saved
from trainer.engine.training_engine import TrainEngine, open_engine
from trainer.episodes.sample_builder import SampleBuilder
from trainer.imitation import cloning_items, imitate
from trainer.model.batches import collate
from trainer.model.loading import load_policy
from trainer.model.logprobs import cut
from trainer.model.model_folder import suppressed_tokens
from trainer.model.pixel_scale import pixel_scale
from trainer.model.sampling import sample_completions
from trainer.ports import StepResult
from trainer.samples import LeftOut, Sample
from trainer.truncation import Truncation
from trainer.versions.checkpoints import TrainerState, write_checkpoint

pytestmark = [
    pytest.mark.integration,
    # torch's own wrappers under ZeRO-3 warn about the names that DeepSpeed calls.
    pytest.mark.filterwarnings("ignore:.*torch.distributed.*is deprecated:FutureWarning"),
]
STATE = TrainerState(version=1, num_trajectories=0, num_updates=0, replay=())


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build(tmp_path_factory.mktemp("model"), seed=1)


@pytest.fixture(scope="module")
def plain(base: Path) -> PlainModel:
    torch.set_num_threads(1)
    return PlainModel(base)


def step_request(
    prompt: Sequence[int], answer: Sequence[int], *, parsed: bool = True, temperature: float = 1.0
) -> StepRequest:
    return StepRequest(
        episode=EpisodeId("e"),
        attempt=1,
        step=0,
        action=Action(kind=ActionKind.WAIT),
        parsed=parsed,
        response="",
        prompt_tokens=tuple(prompt),
        completion_tokens=tuple(answer),
        logprobs=(-1.0,) * len(answer),
        versions=(VersionSpan(start=0, end=len(answer), version=PolicyVersion(0)),),
        temperature=temperature,
    )


Make = Callable[..., Sample]


@pytest.fixture(scope="module")
def make(base: Path, plain: PlainModel) -> Make:
    """Builds a sample from its seed: some screenshots, and a completion of a length of its own."""
    builder = SampleBuilder(base, cutoff_len=200)

    def build(seed: int, *, num_screenshots: int = 1, length: int | None = None, temperature: float = 1.0) -> Sample:
        screenshots = builder.patches([tiny_models.screenshot(seed + index).data for index in range(num_screenshots)])
        answer = completion(seed, length or 4 + seed % 5)
        return builder.build(
            ref(seed), step_request(plain.prompt(num_screenshots), answer, temperature=temperature), screenshots
        )

    return build


def steps(base: Path, samples: Sequence[Sample], *, stage: int = 1, micro: int = 4, count: int = 3) -> list[StepResult]:
    with open_engine(base, settings=settings(stage, small(per_device_train_batch_size=micro))) as e:
        return [e.train(cloning_items(samples)) for _ in range(count)]


def test_logprobs_are_those_of_a_plain_forward_pass(base: Path, plain: PlainModel, make: Make) -> None:
    suppressed = suppressed_tokens(base)
    samples = [make(0), make(1, num_screenshots=3), make(2, length=12), make(3, num_screenshots=2)]
    with open_engine(base, settings=settings()) as engine:
        ours = engine.completion_logprobs(samples)
    for sample, logprobs in zip(samples, ours, strict=True):
        screenshots = [tiny_models.screenshot(sample.ref.step + index).data for index in range(len(sample.screenshots))]
        prompt, answer = np.split(sample.tokens, [sample.num_prompt])
        expected = plain.logprobs(prompt.tolist(), answer.tolist(), screenshots, suppressed)
        np.testing.assert_allclose(logprobs, expected, atol=2e-5)


def test_truncation_and_temperature_are_the_samplers(make: Make, base: Path) -> None:
    """By hand: logits ln 8, ln 4, ln 2, ln 1 of four tokens."""
    logits = torch.log(torch.tensor([[8.0, 4.0, 2.0, 1.0]]))
    first = torch.tensor([0])
    kept = {
        "top_k": cut(Truncation(top_k=2), logits, first),
        "top_p": cut(Truncation(top_p=0.75), logits, first),
        "min_p": cut(Truncation(min_p=0.3), logits, first),
        "sampled": cut(Truncation(top_k=1), logits, torch.tensor([3])),
    }
    shown = {name: torch.isfinite(cut)[0].tolist() for name, cut in kept.items()}
    assert shown == {
        "top_k": [True, True, False, False],
        "top_p": [True, True, False, False],
        "min_p": [True, True, False, False],
        "sampled": [True, False, False, True],
    }
    with open_engine(base, settings=settings()) as engine:
        cold, warm = engine.completion_logprobs([make(0, temperature=0.1), make(0, temperature=1.0)])
        two = engine.completion_logprobs([make(0)], Truncation(top_k=1))[0]
    assert np.abs(cold - warm).max() > 0.5
    assert (two > warm).all(), "the sampled token shares the whole probability with the likeliest one"


def test_the_step_does_not_depend_on_micro_batches(base: Path, make: Make) -> None:
    samples = [make(seed) for seed in range(7)]
    whole = steps(base, samples, micro=7)
    for micro in (1, 3):
        split = steps(base, samples, micro=micro)
        assert [s.loss for s in split] == pytest.approx([s.loss for s in whole], rel=1e-5)
        assert [s.grad_norm for s in split] == pytest.approx([s.grad_norm for s in whole], rel=1e-4)


def test_a_limit_of_tokens_and_checkpointed_activations_change_no_step(base: Path, make: Make) -> None:
    samples = [make(seed, num_screenshots=1 + seed % 2) for seed in range(5)]
    whole = steps(base, samples, micro=5)
    limited = settings(3, small(per_device_train_batch_size=5, max_tokens_per_micro_batch=70))
    deepspeed = limited.deepspeed
    checkpointed = replace(deepspeed, settings={**deepspeed.settings, "activation_checkpointing": {}})
    with open_engine(base, settings=replace(limited, deepspeed=checkpointed)) as engine:
        assert engine.model.is_gradient_checkpointing
        again = [engine.train(cloning_items(samples)) for _ in range(3)]
    assert [s.loss for s in again] == pytest.approx([s.loss for s in whole], rel=1e-4)
    assert again[0].effort.tokens == sum(len(sample.tokens) for sample in samples)


def test_zero_stages_agree_and_the_loss_falls(base: Path, make: Make) -> None:
    samples = [make(seed) for seed in range(6)]
    losses = {stage: [s.loss for s in steps(base, samples, stage=stage, count=5)] for stage in (1, 2, 3)}
    assert losses[2] == pytest.approx(losses[1], rel=1e-4)
    assert losses[3] == pytest.approx(losses[1], rel=1e-4)
    assert losses[1][-1] < losses[1][0] - 0.1


@pytest.mark.parametrize("stage", [1, 3])
def test_a_saved_engine_continues_exactly(base: Path, make: Make, tmp_path: Path, stage: int) -> None:
    samples = [make(seed) for seed in range(4)]
    with open_engine(base, settings=settings(stage)) as engine:
        for _ in range(3):
            engine.train(cloning_items(samples))
        folder, _ = write_checkpoint(tmp_path, base=base, engine=engine.files(), state=STATE)
        expected = [engine.train(cloning_items(samples)) for _ in range(3)]
    with open_engine(folder, settings=settings(stage), resume=folder) as engine:
        assert engine.num_updates == 3
        continued = [engine.train(cloning_items(samples)) for _ in range(3)]
    assert continued == expected


@pytest.mark.parametrize("stage", [1, 3])
def test_a_state_without_a_step_is_whole(base: Path, tmp_path: Path, stage: int) -> None:
    """As behind a version without the optimizer's state, in an iteration that has nothing to train on."""
    with open_engine(base, settings=settings(stage), num_updates=3) as engine:
        folder, _ = write_checkpoint(tmp_path, base=base, engine=engine.files(), state=STATE)
    with open_engine(folder, settings=settings(stage), resume=folder) as engine:
        assert engine.num_updates == 3


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_a_precision_that_the_machine_lacks_is_refused(base: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(CPU_Accelerator, f"is_{name}_supported", lambda _: False)
    with (
        pytest.raises(ConfigurationError, match=f"enables {name}, in which the cpu of this machine does not compute"),
        open_engine(base, settings=narrow(settings(1), name)),
    ):
        pass


def test_settings_that_deepspeed_does_not_take_are_refused_with_its_reason(base: Path) -> None:
    taken = settings(1)
    zero = {"stage": 1, "reduce_buckt_size": 5}
    broken = replace(taken.deepspeed, settings={**taken.deepspeed.settings, "zero_optimization": zero})
    with (
        pytest.raises(ConfigurationError, match=r"does not take the file .*reduce_buckt_size"),
        open_engine(base, settings=replace(taken, deepspeed=broken)),
    ):
        pass


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_in_fp16_steps_that_overflow_are_made_again_and_continue_exactly(
    base: Path, make: Make, tmp_path: Path, stage: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begun at scales of which one overflows and one does not; a step of either is the same up to rounding."""
    # Processors without the instructions for it compute it too, slowly, which is enough here.
    monkeypatch.setattr(CPU_Accelerator, "is_fp16_supported", lambda _: True)
    samples = [make(seed) for seed in range(4)]
    exact = steps(base, samples, stage=stage, count=4)
    with open_engine(base, settings=narrow(settings(stage), "fp16", initial_scale_power=4)) as engine:
        found = [engine.train(cloning_items(samples)) for _ in range(4)]
    assert [each.loss for each in found] == pytest.approx([each.loss for each in exact], rel=0.01)
    assert [each.grad_norm for each in found] == pytest.approx([each.grad_norm for each in exact], rel=0.05)
    overflowing = narrow(settings(stage), "fp16", initial_scale_power=30)
    with open_engine(base, settings=overflowing) as engine:
        scaled = [engine.train(cloning_items(samples)) for _ in range(2)]
        assert [each.loss for each in scaled] == pytest.approx([each.loss for each in exact[:2]], rel=0.01)
        folder, _ = write_checkpoint(tmp_path, base=base, engine=engine.files(), state=STATE)
        expected = [engine.train(cloning_items(samples)) for _ in range(2)]
    with open_saved(folder / "trainer", "optimizer") as saved:
        assert (saved.progress.num_updates, saved.progress.num_steps) == (2, 2)
        assert saved.progress.loss_scale[0] < 2.0**30
    assert {tensor.dtype for tensor in load_file(folder / "model.safetensors").values()} == {torch.float16}
    with open_engine(folder, settings=overflowing, resume=folder) as engine:
        assert [engine.train(cloning_items(samples)) for _ in range(2)] == expected


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("stage", [1, 3])
def test_weights_alone_go_on_with_the_optimizer_of_an_earlier_version(
    base: Path, make: Make, tmp_path: Path, stage: int, dtype: str
) -> None:
    samples = [make(seed) for seed in range(4)]
    chosen = narrow(settings(stage)) if dtype == "bfloat16" else settings(stage)
    with open_engine(base, settings=chosen) as engine:
        for _ in range(3):
            engine.train(cloning_items(samples))
        whole, _ = write_checkpoint(tmp_path / "a", base=base, engine=engine.files(), state=STATE)
        engine.train(cloning_items(samples))
        alone, _ = write_checkpoint(tmp_path / "b", base=base, engine=engine.files(whole=False), state=STATE)
        logprobs = engine.completion_logprobs(samples)
        expected = [engine.train(cloning_items(samples)) for _ in range(2)]
    assert sorted(file.name for file in (alone / "trainer").iterdir()) == ["state.msgpack"]
    weights = load_file(alone / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {getattr(torch, dtype)}
    with open_engine(alone, settings=chosen, resume=whole, num_updates=4) as engine:
        assert engine.num_updates == 4
        assert all(np.array_equal(a, b) for a, b in zip(engine.completion_logprobs(samples), logprobs, strict=True))
        continued = [engine.train(cloning_items(samples)) for _ in range(2)]
        now = weights_of(engine, tmp_path)
    assert [each.learning_rate for each in continued] == [each.learning_rate for each in expected]
    assert continued[0].loss == expected[0].loss, "it is the loss of the same weights"
    assert continued[1].loss < continued[0].loss
    assert any(not torch.equal(now[name], weights[name]) for name in weights)


def weights_of(engine: TrainEngine, folder: Path) -> dict[str, torch.Tensor]:
    """As policies would load them."""
    engine.files(whole=False).write(folder)
    weights: dict[str, torch.Tensor] = load_file(folder / "model.safetensors")
    return weights


def test_a_checkpoint_loads_in_transformers(base: Path, make: Make, tmp_path: Path) -> None:
    with open_engine(base, settings=settings()) as engine:
        engine.train(cloning_items([make(0)]))
        folder, _ = write_checkpoint(tmp_path, base=base, engine=engine.files(), state=STATE)
        ours = engine.completion_logprobs([make(1)])[0]
    AutoProcessor.from_pretrained(folder)
    model, report = AutoModelForImageTextToText.from_pretrained(folder, output_loading_info=True)
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert set(load_file(folder / "model.safetensors")) == set(load_file(base / "model.safetensors"))
    loaded = PlainModel(folder)
    sample = make(1)
    prompt, answer = np.split(sample.tokens, [sample.num_prompt])
    theirs = loaded.logprobs(prompt.tolist(), answer.tolist(), [tiny_models.screenshot(1).data], suppressed_tokens(base))
    np.testing.assert_allclose(ours, theirs, atol=2e-5)
    assert model.config.tie_word_embeddings is False


def test_learning_rate_warms_up(base: Path, make: Make) -> None:
    rates = [step.learning_rate for step in steps(base, [make(0)], count=4)]
    assert rates == pytest.approx([0.5e-3, 1e-3, 1e-3, 1e-3])


def test_screenshots_are_normalised_as_by_the_processor(base: Path, plain: PlainModel, make: Make) -> None:
    import io

    from PIL import Image

    sample = make(5, num_screenshots=2)
    batch = collate(cloning_items([sample]), pixel_scale(base))
    screenshots = [Image.open(io.BytesIO(tiny_models.screenshot(5 + index).data)) for index in range(2)]
    expected = plain.images(images=screenshots, return_tensors="pt")
    assert batch.pixels is not None
    assert batch.grids is not None
    assert torch.equal(batch.pixels, expected["pixel_values"])
    assert torch.equal(batch.grids, expected["image_grid_thw"])


def test_steps_that_cannot_be_trained_on_are_named(base: Path, plain: PlainModel) -> None:
    builder = SampleBuilder(base, cutoff_len=30)
    prompt = plain.prompt()
    assert builder.refusal(step_request(prompt, (30, 2))) is None
    assert builder.refusal(step_request(prompt, ())) is LeftOut.UNUSABLE
    assert builder.refusal(step_request(prompt, (plain.config.image_token_id, 2))) is LeftOut.UNUSABLE
    assert builder.refusal(step_request(prompt, (30,) * 20)) is LeftOut.TOO_LONG
    with pytest.raises(TrainerError, match="12 image tokens"):
        builder.build(ref(0), step_request(prompt, (30, 2)), [])


def test_dealing_gives_every_rank_equally_many_micro_batches(make: Make) -> None:
    samples = [make(seed, length=length) for seed, length in enumerate((9, 8, 7, 6, 5))]
    (idle,) = (item.idle for item in cloning_items([make(5)]))
    shares = deal(cloning_items(samples), num_ranks=2, micro_batch=2, idle=idle)
    shown = [
        [[(item.sample.ref.step, bool(item.targets.weights.any())) for item in part] for part in share] for share in shares
    ]
    assert shown == [[[(0, True), (3, True)], [(4, True)]], [[(1, True), (2, True)], [(5, False)]]]


def test_imitation_is_by_the_model_itself_whatever_temperature_an_answer_was_sampled_at(base: Path, make: Make) -> None:
    cold, plain = (steps(base, [make(seed, temperature=each) for seed in range(3)], count=2) for each in (0.5, 1.0))
    assert [step.loss for step in cold] == [step.loss for step in plain]


def test_imitation_learns_and_can_be_sampled(base: Path, make: Make) -> None:
    """Two screenshots, two answers: after a hundred steps the model says what it was shown."""
    samples = [make(seed, length=3) for seed in (0, 1)]
    algorithm = small(learning_rate=5e-3, per_device_train_batch_size=2)
    with open_engine(base, settings=settings(algorithm=algorithm)) as engine:
        losses = [step.loss for step in imitate(engine, samples, order=[np.arange(2)] * 100, seed=0)]
        answers = sample_completions(
            engine.model,
            samples * 3,
            scale=pixel_scale(base),
            suppressed=suppressed_tokens(base),
            stop_tokens=[2],
            max_new_tokens=8,
            seed=0,
            batch_size=4,
        )
    assert losses[-1] < 0.1
    wanted = [sample.tokens[sample.num_prompt :].tolist() for sample in samples] * 3
    assert sum(answer == want for answer, want in zip(answers, wanted, strict=True)) >= 5


class Loadings:
    """A turn to load, which anybody may have at any time."""

    def __init__(self) -> None:
        self.events: list[str] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self.events.append("begins")
        yield
        self.events.append("ends")


def test_models_are_loaded_in_a_turn(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loadings = Loadings()

    def loaded(*arguments: Any, **named: Any) -> Any:
        loadings.events.append("loads")
        return load_policy(*arguments, **named)

    monkeypatch.setattr(models, "load_policy", loaded)
    with open_engine(base, settings=settings(), while_loading=loadings):
        assert loadings.events == ["begins", "loads", "ends"]


_RANK = """
import sys
from pathlib import Path
from tests.integration.test_trainer_engine import on_ranks
on_ranks(*map(Path, sys.argv[1:]))
"""


def on_ranks(base: Path, work: Path) -> None:
    """What each of two processes runs: rank 0 prints its losses, the other follows."""
    from trainer.engine.training_engine import dismiss_ranks, follow

    if os.environ["RANK"] != "0":
        with pytest.MonkeyPatch.context() as patched:
            left, loadings = watch_earlier_engines(patched), Loadings()
            follow(settings=settings(2), while_loading=loadings)
            assert left == [0, 0], "parameters of an engine when the next one is opened"
            assert loadings.events == ["begins", "ends"] * 2
        return
    builder = SampleBuilder(base, cutoff_len=200)
    plain = PlainModel(base)
    samples = [
        builder.build(
            ref(seed),
            step_request(plain.prompt(), completion(seed, 4 + seed % 5)),
            builder.patches([tiny_models.screenshot(seed).data]),
        )
        for seed in range(7)
    ]
    with open_engine(base, settings=settings(2)) as engine:
        losses = [engine.train(cloning_items(samples)).loss for _ in range(3)]
        total = sum_of(weights_of(engine, work))
        logprob = float(engine.completion_logprobs(samples[:2])[1][0])
    with open_engine(base, settings=settings(2)) as engine:
        assert engine.train(cloning_items(samples)).loss == losses[0], "the other rank opens the next engine too"
    dismiss_ranks()
    print("LOSSES", *losses, "STATE", total, logprob)


def sum_of(weights: dict[str, torch.Tensor]) -> float:
    return float(sum(weight.double().sum() for weight in weights.values()))


def test_two_ranks_agree_with_one(base: Path, make: Make, tmp_path: Path) -> None:
    samples = [make(seed) for seed in range(7)]
    with open_engine(base, settings=settings(2)) as engine:
        alone = [engine.train(cloning_items(samples)).loss for _ in range(3)]
        weights = sum_of(weights_of(engine, tmp_path))
        logprob = float(engine.completion_logprobs(samples[:2])[1][0])
    output = run_ranks(_RANK, base, tmp_path)
    line = next(line for line in output.splitlines() if line.startswith("LOSSES"))
    _, *losses, _, total, first = line.split()
    assert [float(loss) for loss in losses] == pytest.approx(alone, rel=1e-4)
    assert float(total) == pytest.approx(weights, rel=1e-3)
    assert float(first) == pytest.approx(logprob, abs=1e-3)
