"""The notebook among the examples runs from top to bottom, as Jupyter would run it."""

import os
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest
from msgspec.structs import replace

from bus.child_process import run_process
from ops.processes.role_process import millrace_command, millrace_environment
from schemas.messages import Split
from tests.builders import task
from tests.deadlines import HANGS_S
from tests.support.bus.played import judge, play
from tests.support.runs.running_run import running_run

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples/read_a_run.ipynb"


EXECUTE = f"""
import sys
from functools import partial

import nbclient.cli
from traitlets.config import Config

kernel = Config({{"KernelManager": {{"transport": "ipc", "ip": sys.argv.pop(1)}}}})
nbclient.cli.NotebookClient = partial(nbclient.cli.NotebookClient, config=kernel, iopub_timeout={HANGS_S})
nbclient.cli.main()
"""
"""What `jupyter execute` runs, with a kernel at no port that others may take, and of which no output is given up."""


async def said(source: Path, work: Path) -> list[str]:
    """What its cells show, without pictures and warnings, as of another server of this machine on the run's port."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(work), "SOURCE": str(source)}
    options = (f"--output={work / 'played'}", f"--startup_timeout={HANGS_S:.0f}")
    with tempfile.TemporaryDirectory() as sockets:  # whose paths may not be long
        command = (sys.executable, "-c", EXECUTE, f"{sockets}/kernel", *options, str(NOTEBOOK))
        done = await run_process(command, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    notebook = nbformat.read(work / "played.ipynb", as_version=4)
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [output.get("text") or output.data["text/plain"] for output in shown if output.get("name") != "stderr"]


async def test_it_plots_a_run_that_has_ended_and_its_archive(tmp_path: Path) -> None:
    async with running_run(tmp_path / "run") as bus:
        for name, reward in (("a", 1.0), ("b", 0.0), ("c", 1.0)):
            await judge(bus, await play(bus, task(name), num_steps=2), reward)
        other = replace(task("d", split=Split.EVAL), website="demo:find_button?seed=4")
        await judge(bus, await play(bus, other, num_steps=1), 0.0)
    command = millrace_command(["archive", "--once", "--run-dir", str(tmp_path / "run")])
    assert (await run_process(command, env=millrace_environment())).returncode == 0
    for source in (tmp_path / "run", tmp_path / "run/archive"):
        counted, *shown = await said(source, tmp_path)
        assert counted == "4 episodes judged by environment_v1, 4 with a verdict\n"
        pages = shown[-1].splitlines()
        assert [line.split()[0] for line in pages[2:]] == ["demo:find_button", "demo:click_button"]
        assert pages[3].split()[1:] == ["0.666667", "3", "2.0"]


def test_its_outputs_are_stripped() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
