"""A warm start on other people's conversations: real DeepSpeed, frozen parts, kills, and a run that begins from the result."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import numpy as np
import psutil
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from bus.lineage import all_announced
from ops.processes.role_process import millrace_command, millrace_environment
from ops.run.base_models import starting_model
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.served import served
from ops.sft.findings import Findings
from ops.sft.importing import ConversationRequest, source_of
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.messages import Checkpoint
from schemas.policy_config import PolicyConfig
from tests.builders import RUN
from tests.deadlines import HANGS_S
from tests.integration.test_trainer_engine import STATE, step_request
from tests.support.agents import tiny_models
from tests.support.drills.quickstart_process import descendants, find, wait_for
from tests.support.sft.conversations import episode, thinking_model, write_lines
from tests.support.training.trainer_world import PlainModel, completion, ref, settings
from trainer.engine.settings import EngineSettings
from trainer.engine.training_engine import open_engine
from trainer.episodes.sample_builder import SampleBuilder
from trainer.imitation import cloning_items
from trainer.model.frozen import part_of
from trainer.samples import Sample
from trainer.versions.checkpoints import folder_of, write_checkpoint

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(1800),
    # torch's own wrappers under ZeRO-3 warn about the names that DeepSpeed calls.
    pytest.mark.filterwarnings("ignore:.*torch.distributed.*is deprecated:FutureWarning"),
]
_NUM_CONVERSATIONS = 12
_ENDLESS = 100_000
_OVERRIDES = (
    "algorithm_config.deepspeed_config_filename=ds_config_cpu_zero2.json",
    "algorithm_config.per_device_train_batch_size=4",
    "algorithm_config.gradient_accumulation_steps=1",
    "algorithm_config.learning_rate=0.001",
    "algorithm_config.val_split_ratio=0.3",
    "trainer_config.freeze=[vision,projector]",
    "trainer_config.torch_threads=1",
    "env_config.train_tasks_rollout_size=5",
)
_VERSIONS_AN_EPOCH = 3


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build(tmp_path_factory.mktemp("base"), seed=1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return thinking_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    records = [episode(2 + number % 2, task=f"t{number}", first=number) for number in range(_NUM_CONVERSATIONS)]
    return write_lines(tmp_path_factory.mktemp("data") / "episodes.jsonl", records)


# the engine -----------------------------------------------------------------------------------------------------------


def frozen(stage: int) -> EngineSettings:
    chosen = settings(stage)
    return replace(chosen, trainer=replace(chosen.trainer, freeze=("vision", "projector")))


@pytest.fixture(scope="module")
def samples(base: Path) -> list[Sample]:
    builder, plain = SampleBuilder(base, cutoff_len=200), PlainModel(base)
    shots = builder.patches([tiny_models.screenshot(number).data for number in range(4)])
    steps = [step_request(plain.prompt(), completion(number)) for number in range(4)]
    return [builder.build(ref(number), step, [shots[number]]) for number, step in enumerate(steps)]


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_frozen_parts_are_published_byte_for_byte_and_the_others_change(
    base: Path, samples: list[Sample], tmp_path: Path, stage: int
) -> None:
    with open_engine(base, settings=frozen(stage)) as engine:
        losses = [engine.train(cloning_items(samples)).loss for _ in range(4)]
        folder, _ = write_checkpoint(tmp_path, base=base, engine=engine.files(), state=STATE)
    before, after = load_file(base / "model.safetensors"), load_file(folder / "model.safetensors")
    assert set(after) == set(before), "what is not trained is published too"
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == {name for name in before if part_of(name)}
    assert losses[-1] < losses[0]
    with safe_open(folder / "trainer" / "optimizer-rank00000.safetensors", framework="pt") as state:
        kept = {name.partition(".")[2].rpartition("@")[0] for name in state.keys() if "@" in name}  # noqa: SIM118
    assert kept, "the language model has moments"
    assert not any(part_of(name) for name in kept), "what is frozen has none"


@pytest.mark.parametrize("stage", [2, 3])
def test_an_engine_with_frozen_parts_continues_exactly(base: Path, samples: list[Sample], tmp_path: Path, stage: int) -> None:
    with open_engine(base, settings=frozen(stage)) as engine:
        engine.train(cloning_items(samples))
        folder, _ = write_checkpoint(tmp_path, base=base, engine=engine.files(), state=STATE)
        expected = [engine.train(cloning_items(samples)).loss for _ in range(3)]
    with open_engine(folder, settings=frozen(stage), resume=folder) as engine:
        assert [engine.train(cloning_items(samples)).loss for _ in range(3)] == expected


def test_conversations_are_samples_of_the_models_own_processor(model: Path, data: Path) -> None:
    """The trainer builds a sample of every imported answer: image tokens and patches fit each other."""
    config = Config(policy_config=PolicyConfig(base_model=str(model)), bus_config=BusConfig(run=RUN))
    source = source_of(ConversationRequest(path=data, form="openai"), config)
    builder = SampleBuilder(model, cutoff_len=4096)
    for found in source.read(data, Findings(), source.options):
        turns = source.renderer.turns(found.conversation)
        patches = builder.patches([turn.seen.data for turn in turns if turn.seen is not None])
        for turn in turns:
            step = step_request(turn.prompt_tokens, turn.answer_tokens)
            assert builder.refusal(step) is None
            built = builder.build(ref(turn.shown[-1]), step, [patches[number] for number in turn.shown])
            assert np.array_equal(built.tokens[built.num_prompt :], turn.answer_tokens)


# the commands ---------------------------------------------------------------------------------------------------------


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        millrace_command(arguments), env=millrace_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(HANGS_S)


def done(*arguments: str, code: int = 0) -> str:
    ended = subprocess.run(
        millrace_command(arguments), env=millrace_environment(), capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert ended.returncode == code, (ended.stdout + ended.stderr)[-3000:]
    return ended.stdout + ended.stderr


def versions_of(path: Path) -> list[Checkpoint]:
    async def read() -> list[Checkpoint]:
        folder = RunFolder(path)
        config = folder.load()
        async with served(folder, config), join(folder, config, role="monitor", name="test") as bus:
            return await all_announced(bus, subjects_of(config))

    return anyio.run(read)


def begun(run: Path, model: Path) -> tuple[str, ...]:
    return ("--run-dir", str(run), "--config", "sft", f"policy_config.base_model={model}", *_OVERRIDES)


def test_a_warm_start_through_kills_ends_with_the_same_bytes(model: Path, data: Path, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    schedule = "algorithm_config.lr_scheduler_steps=100"  # whatever the epochs
    assert done("import", str(data), "--from", "openai", "--screenshots", "1", *begun(killed, model))
    log = killed / "logs" / "trainer-1.log"
    with running("sft", "--epochs", str(_ENDLESS), "--run-dir", str(killed), schedule) as process:
        wait_for(process, "version_published", log, times=2, limit_s=HANGS_S)
        below = descendants(process)
        find(process, ("ops.cli", "sft")).kill()
        _, alive = psutil.wait_procs(below, timeout=HANGS_S)
        assert not alive
    # It may have published one more than its log says.
    num_epochs = max(3, log.read_text().count("version_published") // _VERSIONS_AN_EPOCH + 2)
    epochs = ("--epochs", str(num_epochs), schedule)
    done("sft", "--run-dir", str(killed), *epochs)
    said = done("sft", str(data), "--from", "openai", "--screenshots", "1", *begun(whole, model), *epochs)
    assert f"{_NUM_CONVERSATIONS} conversations with 30 answers" in said
    once, again = versions_of(whole), versions_of(killed)
    assert len(once) == len(again) == 1 + num_epochs * _VERSIONS_AN_EPOCH
    same, other = (load_file(folder_of(found[-1].uri) / "model.safetensors") for found in (once, again))
    assert all(torch.equal(same[name], other[name]) for name in same)
    before = load_file(model / "model.safetensors")
    assert {name for name in same if torch.equal(same[name], before[name])} == {name for name in same if part_of(name)}
    first, last = once[1].metrics, once[-1].metrics
    assert last["loss"] < first["loss"]
    assert any("val_loss" in version.metrics for version in once)
    result = json.loads((whole / "result.json").read_text())
    assert (result["num_stored"], result["num_passes"]) == (_NUM_CONVERSATIONS, float(num_epochs))
    done("export-model", str(whole), "--out", str(tmp_path / "exported"))
    reinforced = PolicyConfig(base_model=str(model), checkpoint_path=str(tmp_path / "exported"))
    assert starting_model(reinforced) == (tmp_path / "exported").resolve(), "learning from reward begins there"


def test_bad_records_are_listed_together_and_skipped_when_asked(model: Path, tmp_path: Path) -> None:
    bad = {"messages": [{"role": "wizard", "content": "x"}]}
    file = write_lines(tmp_path / "mixed.jsonl", [bad, episode(), {"messages": 3}])
    run = tmp_path / "run"
    said = done("import", str(file), "--from", "openai", *begun(run, model), code=78)
    assert "record 1: message 1 has the role 'wizard'" in said
    assert "record 3: messages is 3: a list is expected" in said
    assert "2 records of" in said
    assert not run.exists(), "nothing was imported"
    said = done("import", str(file), "--from", "openai", "--skip-bad", *begun(run, model))
    assert "1 conversations with 3 answers" in said
    assert "2 bad records skipped" in said
    again = done("import", str(file), "--from", "openai", "--skip-bad", "--run-dir", str(run))
    assert "0 of 1 conversations are to be written" in again
    assert "0 records written" in again


def test_a_run_is_of_one_model_and_one_rendering(model: Path, base: Path, tmp_path: Path) -> None:
    file, run = write_lines(tmp_path / "a=b.jsonl", [episode()]), tmp_path / "run"
    into = ("--from", "openai", "--run-dir", str(run))
    done("import", str(file), *into, "--config", "sft", f"policy_config.base_model={model}")
    assert "was created for the model" in done("import", str(file), *into, f"policy_config.base_model={base}", code=78)
    assert "was created for the model" in done("sft", str(file), *into, f"policy_config.base_model={base}", code=78)
    assert "would have --screenshots 1" in done("sft", str(file), *into, "--screenshots", "1", code=78)
    mended = episode()
    mended["metadata"]["intent"] = "Click it."
    write_lines(file, [episode(task="t2"), mended])
    said = done("import", str(file), *into, code=78)
    assert "record 2: the run holds this conversation with another instruction" in said
    mark = json.loads((run / "import.json").read_text())
    (run / "import.json").write_text(json.dumps({**mark, "is_finished": False}))
    assert "has not come to its end: repeat it, millrace import" in done("sft", "--run-dir", str(run), code=78)
