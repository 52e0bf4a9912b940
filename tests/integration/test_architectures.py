"""Every architecture that is supported, with random weights: prompts, training, files, and what vLLM samples."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from msgspec.structs import replace as replace_in
from PIL import Image
from safetensors import safe_open
from transformers import AutoImageProcessor, AutoModelForImageTextToText, LlavaConfig

from agents.context import Round, build_window
from agents.engine import ChatMessage
from agents.tokens import PromptTokenizer
from schemas.context_config import ContextConfig
from schemas.errors import ConfigurationError
from schemas.messages import Screenshot
from schemas.model_config import ModelConfig
from tests import builders
from tests.deadlines import HANGS_S
from tests.integration.test_prompt_tokens import conversation, processor_tokens
from tests.integration.test_trainer_engine import step_request
from tests.integration.vllm_architectures import shown
from tests.support.agents import tiny_architectures, tiny_models
from tests.support.training.trainer_world import ALGORITHM, completion, ref, settings
from trainer.engine.commands import TrainCommand, decode, encode
from trainer.engine.dealing import deal
from trainer.engine.idle import idle_item
from trainer.engine.training_engine import open_engine
from trainer.episodes.sample_builder import SampleBuilder
from trainer.fast_layers.compiled_layers import compile_layers
from trainer.imitation import cloning_items
from trainer.items import Targets
from trainer.model.batches import collate
from trainer.model.families import family_of
from trainer.model.loading import load_model
from trainer.model.logprobs import CompletionModel
from trainer.model.model_folder import stop_tokens, suppressed_tokens
from trainer.model.pixel_scale import pixel_scale
from trainer.samples import Patches, Sample
from trainer.versions.checkpoints import TrainerState, write_checkpoint

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:.*torch.distributed.*is deprecated:FutureWarning"),
]
ROOT = Path(__file__).parents[2]
NAMES = tiny_architectures.NAMES
PRECISION = {"qwen3_5": "bfloat16"}
"""vLLM has no other for its recurrent layers on a CPU."""
BOUND = {"float32": 1e-4, "bfloat16": 0.06}
"""Of the mean difference in nats."""


class Models:
    """Of each architecture a model, and what became of it in training."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._trained: dict[str, Path] = {}

    def base(self, name: str) -> Path:
        folder = self._folder / name
        return folder if folder.exists() else tiny_architectures.build(folder, name, seed=1)

    def trained(self, name: str) -> Path:
        if name not in self._trained:
            self._trained[name] = train(self.base(name), self._folder / f"{name}-trained", stage=1)
        return self._trained[name]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    torch.set_num_threads(1)
    return Models(tmp_path_factory.mktemp("models"))


def prompt_with(folder: Path, screenshots: Sequence[Screenshot]) -> list[int]:
    messages = [ChatMessage("user", ("Task: click the button\n", each)) for each in screenshots]
    return PromptTokenizer(folder).expanded_prompt([*messages, ChatMessage("user", ("and now?",))])


def samples_of(folder: Path) -> list[Sample]:
    """With one screenshot, two of different sizes, none, and one: of four lengths."""
    builder = SampleBuilder(folder, cutoff_len=4000)
    made = []
    for seed, seeds in enumerate(((0,), (1, 2), (), (4,))):
        screenshots = shown(*seeds)
        step = step_request(prompt_with(folder, screenshots), completion(seed, 4 + seed))
        made.append(builder.build(ref(seed), step, builder.patches([each.data for each in screenshots])))
    return made


def train(base: Path, into: Path, *, stage: int) -> Path:
    """Three steps that move every answer by far more than rounding does."""
    quick = replace(settings(stage), algorithm=replace(ALGORITHM, learning_rate=0.02, warmup_steps=0))
    samples = samples_of(base)
    with open_engine(base, settings=quick) as engine:
        for _ in range(3):
            engine.train(cloning_items(samples))
        state = TrainerState(version=1, num_trajectories=0, num_updates=3)
        folder, _ = write_checkpoint(into, base=base, engine=engine.files(), state=state)
        expected = engine.completion_logprobs(samples)
    with open_engine(folder, settings=quick, resume=folder, base=base) as engine:
        assert all(np.array_equal(*pair) for pair in zip(engine.completion_logprobs(samples), expected, strict=True))
    return folder


def tensors(folder: Path) -> dict[str, tuple[int, ...]]:
    """Names and shapes in a model's files."""
    with safe_open(folder / "model.safetensors", "pt") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def plain_logprobs(model: Any, folder: Path, sample: Sample, screenshots: Sequence[Screenshot]) -> torch.Tensor:
    """As anyone would compute them with transformers: one sequence, whole screenshots, all logits."""
    tokens = torch.from_numpy(sample.tokens.astype(np.int64))[None]
    inputs: dict[str, Any] = {}
    if screenshots:
        images = [Image.open(io.BytesIO(each.data)).convert("RGB") for each in screenshots]
        tiles = {"crop_to_patches": True} if model.config.model_type == "internvl" else {}
        inputs = dict(AutoImageProcessor.from_pretrained(folder)(images=images, return_tensors="pt", **tiles))
        inputs.pop("num_patches", None)
    if model.config.model_type != "internvl":
        inputs["mm_token_type_ids"] = (tokens == model.config.image_token_id).int()
    logits = model(input_ids=tokens, attention_mask=torch.ones_like(tokens), **inputs).logits[0, sample.num_prompt - 1 : -1]
    logits = logits.index_fill(-1, torch.tensor(suppressed_tokens(folder)), float("-inf"))
    chosen: torch.Tensor = logits.log_softmax(-1).gather(1, tokens[0, sample.num_prompt :, None])[:, 0]
    return chosen


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "sizes", [(), ((160, 210), (1280, 768)), ((33, 900), (16, 16), (1000, 31), (112, 112), (48, 80), (20, 21))]
)
def test_prompt_tokens_are_the_processors(models: Models, name: str, sizes: tuple[tuple[int, int], ...]) -> None:
    folder, messages = models.base(name), conversation(*sizes)
    assert PromptTokenizer(folder).expanded_prompt(messages) == processor_tokens(folder, messages)


@pytest.mark.parametrize("name", NAMES)
def test_no_words_of_task_page_or_answer_are_read_as_control_tokens(models: Models, name: str) -> None:
    tokenizer = PromptTokenizer(models.base(name))
    assert tokenizer.control_texts
    assert controls_of(tokenizer, " and ".join(tokenizer.control_texts)) == controls_of(tokenizer, "harmless")
    for spelt in tokenizer.control_texts:
        assert controls_of(tokenizer, f"How a model reads {spelt}{spelt}") == controls_of(tokenizer, "harmless"), spelt


def controls_of(tokenizer: PromptTokenizer, text: str) -> list[int]:
    """The control tokens of a prompt that has `text` wherever others choose the words."""
    task = replace_in(builders.task(), instruction=text)
    seen = [
        replace_in(builders.observation(task, step), title=text, url=text, error=text, page_text=text, screenshot=each)
        for step, each in enumerate(shown(0, 1))
    ]
    answered = replace_in(builders.step_request(task, 0), response=f"Action: {text}")
    window = build_window(task, [Round(seen[0], answered)], seen[1], context=ContextConfig(), model=ModelConfig())
    return [token for token in tokenizer.prompt(window.messages) if token in (*tokenizer.suppressed, *tokenizer.stop_tokens)]


@pytest.mark.parametrize("name", NAMES)
def test_packed_samples_are_those_of_the_plain_model(models: Models, name: str) -> None:
    """Log-probabilities, and gradients by every parameter."""
    folder = models.base(name)
    samples = samples_of(folder)
    packed = CompletionModel(load_model(folder, settings().deepspeed), suppressed_tokens(folder))
    found = packed(collate(cloning_items(samples), pixel_scale(folder))).logprobs
    torch.autograd.backward(found.sum())
    plain = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)
    screenshots = (shown(0), shown(1, 2), (), shown(4))
    expected = torch.cat([plain_logprobs(plain, folder, *each) for each in zip(samples, screenshots, strict=True)])
    torch.autograd.backward(expected.sum())
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-5)
    theirs = dict(plain.named_parameters())
    for parameter_name, parameter in packed.model.named_parameters():
        gradient = theirs[parameter_name].grad
        assert gradient is not None, parameter_name
        assert parameter.grad is not None, parameter_name
        largest = float(gradient.abs().max())
        torch.testing.assert_close(parameter.grad, gradient, atol=2e-3 * largest + 1e-6, rtol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_samples_reach_the_other_ranks_as_they_were_dealt(models: Models, name: str) -> None:
    (sent,) = share = [cloning_items(samples_of(models.base(name)))]
    command = decode(encode(TrainCommand(share, 0.5)))
    assert isinstance(command, TrainCommand)
    (came,) = command.share
    for ours, theirs in zip(sent, came, strict=True):
        assert plainly(ours.targets) == plainly(theirs.targets)
        assert plainly(ours.sample) == plainly(theirs.sample)


def plainly(held: Any) -> Any:
    """The same with shapes and lists in place of arrays, so that it can be compared."""
    match held:
        case np.ndarray():
            return held.dtype, held.shape, held.tolist()
        case tuple():
            return [plainly(each) for each in held]
        case Sample() | Patches() | Targets():
            return [plainly(getattr(held, field.name)) for field in fields(held)]
    return held


@pytest.mark.parametrize("name", NAMES)
def test_ranks_call_the_same_parts_of_a_model_whatever_they_are_dealt(
    models: Models, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As often and in the same order, to and fro: under ZeRO-3 they would wait for each other for ever."""
    monkeypatch.setattr("trainer.model.logprobs._CHUNK", 3)
    folder = models.base(name)
    model = CompletionModel(load_model(folder, settings().deepspeed), suppressed_tokens(folder)).train()
    model.model.gradient_checkpointing_enable({"use_reentrant": False})
    called: list[str] = []
    for path, module in model.named_modules():
        module.register_forward_pre_hook(lambda *_, path=path: called.append(path))
    items = cloning_items(samples_of(folder))
    idle = idle_item(model.model, stop_token=min(stop_tokens(folder)))
    calls = {}
    for num_ranks in (3, 4):
        for rank, (part,) in enumerate(deal(items, num_ranks=num_ranks, micro_batch=2, idle=idle)):
            called.clear()
            torch.autograd.backward(model(collate(part, pixel_scale(folder))).logprobs.sum())
            calls[num_ranks, rank] = list(called)
    expected = calls.pop((3, 0))
    assert expected.count("model.lm_head") == 1
    for place, found in calls.items():
        assert found == expected, place


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_compiled_layers_compute_the_same(models: Models, name: str, checkpointed: bool) -> None:
    """Whatever a micro-batch holds, and without being compiled anew for every size of it."""
    folder = models.base(name)
    samples = samples_of(folder)
    plain, compiled = (CompletionModel(load_model(folder, settings().deepspeed), suppressed_tokens(folder)) for _ in range(2))
    if checkpointed:
        compiled.model.gradient_checkpointing_enable({"use_reentrant": False})
    assert compile_layers(compiled.model, backend="eager") > 0
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    num_graphs = []
    for chosen in (samples[:2], samples[1:], samples, samples[:3], samples + samples[1:], samples + samples[:1]):
        batch = collate(cloning_items(chosen), pixel_scale(folder))
        expected, found = (model.train()(batch).logprobs for model in (plain, compiled))
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        for model, logprobs in ((plain, expected), (compiled, found)):
            model.zero_grad()
            torch.autograd.backward(logprobs.sum())
        for parameter, other in zip(plain.parameters(), compiled.parameters(), strict=True):
            assert parameter.grad is not None
            largest = float(parameter.grad.abs().max())
            torch.testing.assert_close(other.grad, parameter.grad, atol=5e-3 * largest + 1e-6, rtol=1e-3)
        num_graphs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    assert 0 < num_graphs[2] == num_graphs[-1], num_graphs


@pytest.mark.parametrize("name", NAMES)
def test_trained_weights_are_written_as_the_base_has_them(models: Models, name: str) -> None:
    assert tensors(models.trained(name)) == tensors(models.base(name))


def test_experts_are_turned_under_zero_3_too(models: Models, tmp_path: Path) -> None:
    base = models.base("qwen3_vl_moe")
    assert tensors(train(base, tmp_path, stage=3)) == tensors(base)


@pytest.fixture(scope="module")
def answers(models: Models) -> Mapping[str, Sequence[dict[str, Any]]]:
    """What vLLM said with the base, and with the trained model in its place."""
    engines = [(str(models.base(name)), str(models.trained(name)), PRECISION.get(name, "float32")) for name in NAMES]
    child = subprocess.run(
        [sys.executable, "-m", "tests.integration.vllm_architectures", json.dumps(engines)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=len(NAMES) * HANGS_S,
        check=False,
    )
    assert child.returncode == 0, child.stdout[-3000:] + child.stderr[-6000:]
    return dict(zip(NAMES, json.loads(child.stdout.strip().splitlines()[-1]), strict=True))


@pytest.mark.timeout((len(NAMES) + 1) * HANGS_S)
@pytest.mark.parametrize("name", NAMES)
def test_what_vllm_samples_is_what_the_trainer_computes(
    models: Models, answers: Mapping[str, Sequence[dict[str, Any]]], name: str
) -> None:
    folders = (models.base(name), models.trained(name))
    mismatch = np.zeros((2, 2))
    for told in answers[name]:
        (version,) = {span["version"] for span in told["versions"]}
        for number, folder in enumerate(folders):
            mismatch[version, number] += difference(folder, told) / (len(answers[name]) / 2)
    bound = BOUND[PRECISION.get(name, "float32")]
    assert mismatch.diagonal().max() < bound, mismatch
    assert mismatch[0, 1] > 5 * bound, "training moved what it says"
    assert mismatch[1, 0] > 5 * bound


def difference(folder: Path, told: dict[str, Any]) -> float:
    """Mean absolute difference to what a model computes for the same answer, in nats."""
    builder = SampleBuilder(folder, cutoff_len=4000)
    patches = builder.patches([each.data for each in shown(*told["screenshots"])])
    sample = builder.build(ref(0), step_request(told["prompt_tokens"], told["completion_tokens"]), patches)
    model = CompletionModel(load_model(folder, settings().deepspeed), suppressed_tokens(folder))
    with torch.no_grad():
        found = model(collate(cloning_items([sample]), pixel_scale(folder))).logprobs
    return float(np.abs(np.array(told["logprobs"]) - found.numpy()).mean())


def test_other_models_are_refused_by_name(tmp_path: Path) -> None:
    tiny_models.build(tmp_path, seed=1)
    LlavaConfig().save_pretrained(tmp_path)
    with pytest.raises(ConfigurationError, match=r"type 'llava' cannot be trained here: .*must be one of glm4v, internvl"):
        SampleBuilder(tmp_path, cutoff_len=100)
    processor = json.loads((tmp_path / "processor_config.json").read_text())
    processor["image_processor"]["image_processor_type"] = "CLIPImageProcessor"
    (tmp_path / "processor_config.json").write_text(json.dumps(processor))
    with pytest.raises(ConfigurationError, match=r"a CLIPImageProcessor cannot be counted in tokens"):
        PromptTokenizer(tmp_path)


def test_layers_that_look_at_a_window_are_refused(models: Models) -> None:
    config = load_model(models.base("internvl"), settings().deepspeed).config
    config.text_config.layer_types = ["sliding_attention", "full_attention"]
    with pytest.raises(ConfigurationError, match="sliding_attention layers cannot be trained here"):
        family_of(config)
