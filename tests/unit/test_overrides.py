"""What code writes as overrides means what was written, whatever a value or a folder is called."""

import shlex
import shutil
from pathlib import Path

import pytest

from ops.cli import main
from ops.config import loading
from ops.config.loading import dump_config, load_config
from ops.config.overrides import as_overrides
from ops.config.recipes import RECIPES
from ops.project import clicking_model
from ops.project.writing import TEMPLATE
from ops.replay.config import copied_config
from ops.run.folder import RunFolder
from schemas.config import Config

FOLDERS = ("it's jürgen", "millrace-main (1)", "a,b=[c]{d}:e", "C# & 50%", "~x;y!", 'back\\slash "q"', "${now:} \\${a}")


@pytest.mark.parametrize("text", ["", "\\\\", "\\'", "null", "1.5", *FOLDERS])
def test_texts_reach_the_configuration_as_they_are(text: str) -> None:
    config = load_config("default", as_overrides({"save_path": text, "browser_config.denied_hosts": ["a.example", "b"]}))
    assert (config.save_path, config.browser_config.denied_hosts) == (text, ("a.example", "b"))


def test_tables_reach_the_configuration_as_they_are() -> None:
    tables: dict[str, object] = {
        "judge_config.composites": {"both-of": {"parts": {"environment_v1": 1, "rubric_v1": 2}, "combine": "any"}},
        "openai_config.prices": {"google/gemini-2.5": {"input": 0.5, "output": 1}},
    }
    config = load_config("default", as_overrides(tables))
    assert config.judge_config.composites["both-of"].parts == {"environment_v1": 1.0, "rubric_v1": 2.0}
    assert config.openai_config.prices["google/gemini-2.5"].input == 0.5


@pytest.mark.parametrize("name", FOLDERS)
def test_recipes_are_found_wherever_the_project_is(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / name / "recipes"
    shutil.copytree(RECIPES, elsewhere)
    mine = tmp_path / "mine.yaml"
    mine.write_text("defaults: [simulation, _self_]\nfeeder_config: {seed: 5}\n")
    expected = load_config(mine, ["objective=grpo"])
    monkeypatch.setattr(loading, "RECIPES", elsewhere)
    assert load_config(mine, ["objective=grpo"]) == expected


@pytest.mark.parametrize("name", FOLDERS)
def test_a_run_is_copied_into_any_folder(name: str, tmp_path: Path) -> None:
    source = tmp_path / "config.yaml"
    source.write_text(dump_config(load_config("simulation")))
    into = RunFolder(tmp_path / name)
    assert copied_config(source, into, suffix="replay").save_path == str(into.path)


@pytest.mark.parametrize("name", FOLDERS)
def test_the_model_of_a_project_knows_its_tasks_wherever_that_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / name
    shutil.copytree(TEMPLATE, project)
    asked: list[Path] = []

    def build(folder: Path, config: Config, *, tasks: list[str], pages: list[str]) -> None:
        asked.append(Path(config.data_path))
        assert len(tasks) == 3
        assert folder.parent == project

    monkeypatch.setattr(clicking_model, "build_clicking_model", build)
    clicking_model.main(project)
    assert asked == [project]


@pytest.mark.parametrize("name", FOLDERS)
def test_what_is_to_be_typed_for_a_cluster_can_be(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / name
    assert main(["cluster", "--out", str(out), "--server", "a.lan", "--run", "mine"]) == 0
    typed = capsys.readouterr().out.partition("millrace streams ")[2].partition("\n4. ")[0].replace("\\\n", " ")
    bus = load_config("default", shlex.split(typed)[2:]).bus_config
    assert (bus.run, bus.url) == ("mine", "tls://a.lan:4222")
    assert (bus.ca_file, bus.keys) == (str(out / "ca.pem"), str(out / "keys" / "mine"))
