"""System prompts from text files of one's own."""

import argparse
from pathlib import Path

import pytest

from agents.parsing import parse_response
from agents.prompts import prompt_of, system_prompt
from agents.rendering import render_action
from ops.analysis.evaluation.settings import settings_of
from ops.commands.execution import joined_run, planned_run
from ops.config.loading import dump_config, load_config
from ops.run.folder import RunFolder
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.messages import Action, ActionKind
from schemas.model_config import ModelConfig
from tests.support.agents.action_spaces import STANDARD

BACK = Action(kind=ActionKind.GO_BACK)
MINE = "./mine.txt"
OVERRIDE = f"model_config.prompt_version={MINE}"


def _file(folder: Path, text: str) -> Path:
    path = folder / "mine.txt"
    path.write_text(text, encoding="utf-8")
    return path


def _recipe(folder: Path) -> Path:
    path = folder / "mine.yaml"
    path.write_text(f"defaults: [simulation, _self_]\nmodel_config: {{prompt_version: {MINE}}}\n")
    return path


def _told(config: Config) -> str:
    return system_prompt(config.model_config.prompt_version, STANDARD, config.model_config.prompt_text)


def test_the_tool_is_put_in() -> None:
    tool, text = STANDARD.tool, "Prices are in $$.\n$definition\nFor example: ${example}s"
    assert system_prompt(MINE, text=text) == f"Prices are in $.\n{tool.definition}\nFor example: {tool.example}s"


def test_it_can_be_configured_and_demonstrated(tmp_path: Path) -> None:
    version = str(_file(tmp_path, "$definition\n"))
    config = load_config("default", [f"model_config.prompt_version={version}"])
    said = render_action(BACK, thought="Back.", model=config.model_config)
    read = parse_response(said)
    assert (read.action, read.thought) == (BACK, "Back.")
    assert config.model_config == ModelConfig(prompt_version=version, prompt_texts={version: "$definition"})


def test_a_path_is_seen_from_where_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        _file(folder, f"{folder.name} $definition")
    monkeypatch.chdir(here)
    assert _told(load_config(_recipe(there))).startswith("there ")
    (there / "more.yaml").write_text("defaults: [mine, _self_]\n")
    assert _told(load_config(there / "more.yaml")).startswith("there ")
    assert _told(load_config(_recipe(there), [OVERRIDE])).startswith("here ")
    assert _told(load_config("simulation", [OVERRIDE])).startswith("here ")


@pytest.mark.parametrize(
    "text", ["${definition}s, $$5 ${example}", "a \\\\${definition} 'b' \"c\": # d\n\n  \tgrün $definition"]
)
def test_a_stored_configuration_holds_the_text(tmp_path: Path, text: str) -> None:
    _file(tmp_path, text)
    config = load_config(_recipe(tmp_path))
    assert config.model_config.prompt_texts == {MINE: text}
    stored = tmp_path / "stored" / "config.yaml"
    stored.parent.mkdir()
    stored.write_text(dump_config(config))
    assert load_config(stored) == config


def test_what_becomes_of_its_file_changes_nothing_in_a_run(tmp_path: Path) -> None:
    recipe, run_dir = _recipe(tmp_path), tmp_path / "run"
    file = _file(tmp_path, "first $definition")
    options = argparse.Namespace(config=recipe, run_dir=run_dir, overrides=[])
    _, created = joined_run(options)
    for change in (lambda: file.write_text("second $definition"), lambda: file.write_text("no tool"), file.unlink):
        change()
        assert RunFolder(run_dir).load() == created
        assert planned_run(options)[1] == created
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_config(recipe)


def test_two_texts_are_two_prompts_to_an_evaluation(tmp_path: Path) -> None:
    found = set()
    for text in ("one $definition", "two $definition"):
        _file(tmp_path, text)
        found.add(settings_of(load_config(_recipe(tmp_path)), tasks_sha256="", num_tasks=1)["prompt_version"])
    assert len(found) == 2
    assert settings_of(Config(), tasks_sha256="", num_tasks=1)["prompt_version"] == "vanilla"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no tool", r"does not say where the tool goes: write \$definition there"),
        ("$definition costs $ 5", r"has a \$ that begins no placeholder: write \$\$"),
        ("$definition $tool $example $answer", r"has \$answer, \$tool: nothing but"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_when_it_is_loaded(tmp_path: Path, text: str, reason: str) -> None:
    _file(tmp_path, text)
    with pytest.raises(ConfigurationError, match=reason):
        load_config(_recipe(tmp_path))
    with pytest.raises(ConfigurationError, match=reason):
        prompt_of(MINE, text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path)
    with pytest.raises(ConfigurationError, match=r"mine\.txt cannot be read"):
        load_config(recipe)
    (tmp_path / "mine.txt").write_bytes(b"\xff$definition")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_config(recipe)
