"""What `millrace sft` and `millrace import --from` are asked by their arguments."""

from pathlib import Path

import pytest

from ops.cli import main, parse
from ops.commands.conversation_arguments import conversation_request


def test_data_and_overrides_are_told_apart_wherever_they_stand() -> None:
    words = ["sft", "a.b=1", "data.jsonl", "--from", "openai", "--run-dir", "runs/x", "c.d=2", "--epochs", "4"]
    options = parse([*words, "--screenshots", "0"])
    assert (options.data, options.run_dir, options.epochs) == (Path("data.jsonl"), Path("runs/x"), 4)
    assert options.overrides == ["a.b=1", "c.d=2"]
    request = conversation_request(options, Path("/data.jsonl"))
    assert (request.form, request.num_screenshots, request.skip_bad) == ("openai", 0, False)


def test_a_file_whose_name_looks_like_an_override_is_data(tmp_path: Path) -> None:
    data = tmp_path / "seed=1.jsonl"
    data.touch()
    options = parse(["sft", str(data), "a.b=1", "~c.d", "--from", "openai", "--run-dir", "r"])
    assert (options.data, options.overrides) == (data, ["a.b=1", "~c.d"])


def test_without_a_number_all_screenshots_are_kept() -> None:
    options = parse(["import", "data", "--from", "llamafactory", "--dataset", "web", "--skip-bad", "--run-dir", "r"])
    request = conversation_request(options, Path("/data"))
    assert (request.num_screenshots, request.options.dataset, request.skip_bad) == (None, "web", True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("import", "data", "--screenshots", "0", "--run-dir", "r"), "--screenshots of conversations: write --from"),
        (("import", "data", "--skip-bad", "--run-dir", "r"), "--skip-bad of conversations: write --from"),
        (("import", "data", "--from", "openai", "--dataset", "x", "--run-dir", "r"), "--dataset names one of"),
        (("import", "data", "--from", "openai", "--no-judgements", "--run-dir", "r"), "leave --no-judgements out"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 78
    assert said in capsys.readouterr().err


def test_two_files_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["sft", "a.jsonl", "b.jsonl"])
    assert "a.jsonl and b.jsonl are several files or folders: write one" in capsys.readouterr().err
