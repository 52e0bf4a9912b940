"""docs/first_hour.md, typed from top to bottom in an empty folder."""

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ops.processes.role_process import millrace_command, millrace_environment
from tests.deadlines import HANGS_S
from tests.support.texts.documented_commands import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]
_PAGE = (ROOT / "docs/first_hour.md").read_text()
_ENVIRONMENT = {**millrace_environment(), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


def typed(line: str, folder: Path) -> str:
    """What it printed."""
    program, *words = shlex.split(line)
    python = {"pytest": ("-m", "pytest", "-p", "no:cacheprovider"), "python": ()}
    command = millrace_command(words) if program == "millrace" else (sys.executable, *python[program], *words)
    if words[:1] == ["view"]:
        return seen(command, folder)
    done = subprocess.run(command, cwd=folder, env=_ENVIRONMENT, capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout


def seen(command: tuple[str, ...], folder: Path) -> str:
    """The first line of what goes on until Ctrl-C."""
    with subprocess.Popen(command, cwd=folder, env=_ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(HANGS_S) == 130
    return said


def test_everything_on_the_page_does_what_it_says(tmp_path: Path) -> None:
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    folder, printed = tmp_path, dict[str, str]()
    for kind, block in blocks[1:]:
        if kind == "python":
            (folder / "read.py").write_text(block)
        for line in ["python read.py"] if kind == "python" else block.splitlines():
            if line.startswith("cd "):
                folder /= line.removeprefix("cd ")
            else:
                printed[" ".join(line.split()[:2])] = typed(line, folder)
    assert blocks[0] == ("sh", ". .venv/bin/activate\n")
    assert "2 passed" in printed["pytest"]
    assert {each.name for each in (folder / "runs").iterdir()} == {"look", "mine"}
    assert len(printed["python read.py"].splitlines()) == 48, "two versions of 24 episodes"
    assert (folder / "runs/mine/report/report.html").is_file()
    assert printed["millrace view"].startswith("http://127.0.0.1:")
    judged = typed("millrace watch judgements --run-dir runs/look --no-follow", folder).splitlines()
    messages = [json.loads(line)["message"] for line in judged]
    assert [message["reward"] for message in messages] == [1.0] * 24, "the scripted player solves every task"
    assert {message["rubric"] for message in messages} == {"garden_v1"}
    figures = [json.loads(line) for line in (folder / "runs/mine/metrics.jsonl").read_text().splitlines()]
    trained = [line for line in figures if "parse_rate" in line]
    assert [line["version"] for line in trained] == [1, 2], "whether its groups differ in reward or not"
    assert all(line["parse_rate"] > 0.8 for line in trained), "it clicks from the beginning"
    assert "every admitted task has one trajectory and one judgement" in typed("millrace audit runs/mine", folder)
