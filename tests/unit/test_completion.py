"""What a shell is told of how a line may go on, as argcomplete asks for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ops.console.completion import SHELLS

_WORDS = " \t\n\"'><=;|&(:"
"""At which bash ends a word."""


def completed(line: str, folder: Path) -> list[str]:
    """In `folder`, the last word of `line` in whole or behind its equals sign, as the shell puts them in its place."""
    answer = folder / "answer"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "_ARGCOMPLETE_COMP_WORDBREAKS": _WORDS,
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    command = [sys.executable, "-m", "ops.cli"]
    subprocess.run(command, check=True, env={**os.environ, **asked, "PYTHONPATH": str(Path(__file__).parents[2])}, cwd=folder)
    return [word.strip() for word in answer.read_text().split("\x0b")]


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("millrace re", {"replay", "report", "restart", "rejudge"}),
        ("millrace run update_on", {"update_online"}),
        ("millrace run mine", {"mine.yaml"}),
        ("millrace eval --con", {"--config"}),
        ("millrace eval --config quick", {"quickstart", "quickstart_miniwob"}),
        ("millrace run update_online policy_config.temp", {"policy_config.temperature="}),
        ("millrace run update_online feeder_config.mode=", {"sync", "async"}),
        ("millrace run update_online objective=gr", {"grpo"}),
        ("millrace config --explain policy_con", {"policy_config", "policy_config.top_k"}),
        ("millrace completion ", set(SHELLS)),
    ],
)
def test_a_line_may_go_on_so(line: str, some: set[str], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").touch()
    (tmp_path / "mine.yml").touch()
    words = set(completed(line, tmp_path))
    assert some <= words
    assert "mine.yml" not in words


def test_a_word_that_nothing_begins_with_stays(tmp_path: Path) -> None:
    assert completed("millrace run update_online nothing_begins_so", tmp_path) == [""]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_code_for_a_shell_names_the_command(shell: str) -> None:
    done = subprocess.run([sys.executable, "-m", "ops.cli", "completion", shell], check=True, capture_output=True, text=True)
    assert "millrace" in done.stdout
    assert done.stderr == ""
