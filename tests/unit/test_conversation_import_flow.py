"""An import from its look to its mark: what a run refuses, and what a killed import leaves, on a bus in memory."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bus.memory import MemoryBus
from ops.archive.importer import Importer
from ops.run.folder import RunFolder
from ops.sft import importing
from ops.sft.agreement import agreed
from ops.sft.import_mark import ImportMark, begin_import, prompts_digest, require_import
from ops.sft.importing import ConversationRequest, import_conversations
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.context_config import ContextConfig
from schemas.errors import ConfigurationError
from schemas.model_config import ModelConfig
from schemas.policy_config import PolicyConfig
from tests.builders import RUN
from tests.support.sft.conversations import episode, thinking_model, write_lines
from tests.support.training.trainer_world import SUBJECTS

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return thinking_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> MemoryBus:
    """In the place of the run's server."""
    bus = MemoryBus(SUBJECTS)

    @asynccontextmanager
    async def served(*_: object, **__: object) -> AsyncIterator[MemoryBus]:
        yield bus

    monkeypatch.setattr(importing, "served", served)
    monkeypatch.setattr(importing, "join", served)
    monkeypatch.setattr(importing, "subjects_of", lambda _: SUBJECTS)
    return bus


def config_of(model: Path) -> Config:
    return Config(policy_config=PolicyConfig(base_model=str(model)), bus_config=BusConfig(run=RUN))


async def judged(bus: MemoryBus) -> int:
    return len(await bus.history(SUBJECTS.judged, SUBJECTS.judgements(None)))


async def put(run: RunFolder, config: Config, file: Path, *, num_screenshots: int | None = 1) -> None:
    request = ConversationRequest(path=file, form="openai", num_screenshots=num_screenshots)
    await import_conversations(request, run, agreed(run, config))


async def test_nothing_is_created_before_everything_was_looked_at(
    model: Path, run: RunFolder, bus: MemoryBus, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="1 record of"):
        await put(run, config_of(model), write_lines(tmp_path / "a.jsonl", [episode(), {"messages": 3}]))
    assert not run.path.exists()
    await put(run, config_of(model), write_lines(tmp_path / "a.jsonl", [episode()]))
    assert run.load().policy_config.base_model == str(model)
    assert await judged(bus) == 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            lambda config, other: replace(config, policy_config=PolicyConfig(base_model=str(other))),
            "was created for the model",
        ),
        (
            lambda config, _: replace(config, model_config=ModelConfig(prompt_version="complete")),
            r"model_config: .* was created",
        ),
        (lambda config, _: replace(config, bus_config=BusConfig(run=RUN, rubrics=("other",))), "bus_config.rubrics' first"),
        (lambda config, _: replace(config, bus_config=BusConfig(run=RUN, num_shards=7)), "num_shards"),
        (lambda config, _: replace(config, context_config=ContextConfig(max_calls=4)), "max_calls"),
    ],
)
def test_a_run_for_something_else_is_refused(model: Path, run: RunFolder, tmp_path: Path, change: object, what: str) -> None:
    assert callable(change)
    config = config_of(model)
    run.create(config)
    other = tmp_path / "other"
    shutil.copytree(model, other)
    assert agreed(run, config).policy_config.base_model == str(model.resolve())
    with pytest.raises(ConfigurationError, match=what):
        agreed(run, change(config, other))


async def test_what_a_killed_import_wrote_is_not_trained_on(
    model: Path, run: RunFolder, bus: MemoryBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_lines(tmp_path / "a.jsonl", [episode(task=f"t{number}") for number in range(3)])
    prompts = prompts_digest(model)
    require_import(run, prompts)

    async def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Importer, "judgement", killed)
        with pytest.raises(KeyboardInterrupt):
            await put(run, config_of(model), file)
    assert await judged(bus) == 0, "all episodes come before the first judgement"
    with pytest.raises(ConfigurationError, match=f"repeat it, millrace import {file} --from openai --screenshots 1"):
        require_import(run, prompts)
    other = write_lines(tmp_path / "b.jsonl", [episode(task="t9")])
    with pytest.raises(ConfigurationError, match="repeat that first"):
        await put(run, config_of(model), other)
    whole = file.read_text()
    write_lines(file, [episode()])
    with pytest.raises(ConfigurationError, match=r"has 1 conversations now, and its import .* was begun with 3"):
        await put(run, config_of(model), file)
    file.write_text(whole)
    await put(run, config_of(model), file)
    require_import(run, prompts)
    assert await judged(bus) == 3
    await put(run, config_of(model), other)
    assert await judged(bus) == 4


async def test_another_rendering_of_the_same_is_refused(model: Path, run: RunFolder, bus: MemoryBus, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    shutil.copytree(model, mine)
    file = write_lines(tmp_path / "a.jsonl", [episode()])
    await put(run, config_of(mine), file)
    with pytest.raises(ConfigurationError, match="with --screenshots 1, and these would have all screenshots"):
        await put(run, config_of(mine), file, num_screenshots=None)
    template = mine / "chat_template.jinja"
    template.write_text(template.read_text().replace("<tools>", "<functions>"))
    with pytest.raises(ConfigurationError, match="rendered with another tokenizer, chat template or image processor"):
        await put(run, config_of(mine), file)
    with pytest.raises(ConfigurationError, match="rendered with another tokenizer, chat template or image processor"):
        require_import(run, prompts_digest(mine))
    assert await judged(bus) == 1


async def test_a_run_that_trains_takes_no_other_conversations(
    model: Path, run: RunFolder, bus: MemoryBus, tmp_path: Path
) -> None:
    file = write_lines(tmp_path / "a.jsonl", [episode()])
    await put(run, config_of(model), file)
    stored = run.load()
    run.store(replace(stored, feeder_config=replace(stored.feeder_config, num_stored=1)))
    await put(run, run.load(), file)
    write_lines(file, [episode(), episode(task="t2")])
    with pytest.raises(ConfigurationError, match="trains on 1 conversations already, and 1 of these are not among them"):
        await put(run, run.load(), file)
    assert await judged(bus) == 1


async def test_conversations_that_the_disk_cannot_take_are_refused(
    model: Path,
    run: RunFolder,
    bus: MemoryBus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = write_lines(tmp_path / "a.jsonl", [episode()])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 512 * 2**20}))
    with pytest.raises(ConfigurationError, match="MiB free and the run needs"):
        await put(run, config_of(model), file)
    assert "1 of 1 conversations are to be written: 0.0 MiB" in capsys.readouterr().out
    assert not run.config.exists()
    assert await judged(bus) == 0


async def test_a_file_that_changes_under_way_is_told(
    model: Path, run: RunFolder, bus: MemoryBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_lines(tmp_path / "a.jsonl", [episode(), episode(task="t2")])

    def changed(folder: RunFolder, mark: ImportMark) -> None:
        begin_import(folder, mark)
        write_lines(file, [episode()])

    monkeypatch.setattr(importing, "begin_import", changed)
    with pytest.raises(ConfigurationError, match="was changed while it was imported"):
        await put(run, config_of(model), file)
    with pytest.raises(ConfigurationError, match="has not come to its end"):
        require_import(run, prompts_digest(model))
