"""Whatever stands in a YAML file becomes a value or a sentence; a quickstart leaves another run alone."""

from pathlib import Path

import pytest

from ops import cli
from ops.config.loading import load_config
from ops.config.reading import MAX_BYTES, read_yaml
from ops.quickstart.quickstart import Quickstart, require_own
from ops.quickstart.results import Lesson
from ops.run.folder import RunFolder
from schemas.errors import ConfigurationError


def bomb(levels: int) -> str:
    """Ten times as many values with every level."""
    lines = "".join(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, levels))
    return f"a0: &a0 [x]\n{lines}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe", r"is no YAML: it is not UTF-8 text \(byte 0\)"),
        (b"a: [1", r"is no YAML: line \d, column \d"),
        (b"a: 2026-13-45", "is no YAML: month must be in"),
        (b"x: " + b"y" * MAX_BYTES, "is larger than 1 MiB"),
        (b"[" * 60 + b"]" * 60, "too deep in each other"),
        (bomb(9).encode(), "has more than 100000 values"),
    ],
)
def test_what_is_no_settings_file_is_told(content: bytes, said: str, tmp_path: Path) -> None:
    (file := tmp_path / "mine.yaml").write_bytes(content)
    with pytest.raises(ConfigurationError, match=said):
        read_yaml(file)


def test_an_alias_a_mark_at_the_beginning_and_an_empty_file_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    for content, value in ((bomb(2), {"a0": ["x"], "a1": [["x"]] * 10}), ("\ufeffa: 1", {"a": 1}), ("", None)):
        file.write_text(content)
        assert read_yaml(file) == value


@pytest.mark.parametrize(
    ("name", "begins_with", "said"),
    [
        ("quickstart", "quickstart_miniwob", r"quickstart\.yaml has the name of a recipe .*by way of quickstart_miniwob"),
        ("quickstart", "quickstart", r"begins with itself .* give the file another name where the recipe is meant"),
    ],
)
def test_a_file_that_stands_in_the_place_of_a_recipe_it_begins_with(
    name: str, begins_with: str, said: str, tmp_path: Path
) -> None:
    """Hydra stayed in that circle until Python's stack was full."""
    (file := tmp_path / f"{name}.yaml").write_text(f"defaults: [{begins_with}, _self_]\n")
    with pytest.raises(ConfigurationError, match=said):
        load_config(file)


def test_files_that_begin_with_each_other_are_named(tmp_path: Path) -> None:
    for name, begins_with in (("one", "two"), ("two", "one")):
        (tmp_path / f"{name}.yaml").write_text(f"defaults: [{begins_with}]\n")
    with pytest.raises(ConfigurationError, match=r"two\.yaml begins with itself \(defaults: one\)"):
        load_config(tmp_path / "one.yaml")


@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("named", ["mine.yml", "begins.yaml", "begins_in_full.yaml"])
def test_a_file_of_another_ending_is_not_taken_for_its_neighbour(named: str, beside: bool, tmp_path: Path) -> None:
    (tmp_path / "mine.yml").write_text("defaults: [simulation, _self_]\n")
    (tmp_path / "begins.yaml").write_text("defaults: [mine, _self_]\n")
    (tmp_path / "begins_in_full.yaml").write_text("defaults: [mine.yml, _self_]\n")
    if beside:
        (tmp_path / "mine.yaml").write_text("defaults: [simulation, _self_]\nfeeder_config: {seed: 7}\n")
    if beside and named == "begins.yaml":
        assert load_config(tmp_path / named).feeder_config.seed == 7
        return
    for path in (tmp_path / named, str(tmp_path / named)):
        with pytest.raises(ConfigurationError, match=r"mine\.yml cannot be read, .*: rename it to mine\.yaml"):
            load_config(path)


def test_a_quickstart_goes_on_with_no_run_but_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder(tmp_path / "run")
    lesson = Lesson(seed=0, family="click_button", observe="pixels", objective="cloning", mode="async")
    config = Quickstart(folder, load_config("quickstart", ["objective=cloning"]), lesson).config
    folder.create(config, needed_bytes=0)
    require_own(folder, config)
    stored = folder.config.read_bytes()
    assert cli.main(["quickstart", "--run-dir", str(folder.path), "--seed", "1"]) == 78
    assert "holds a run that was begun with other settings: write the same" in capsys.readouterr().err
    assert folder.config.read_bytes() == stored
