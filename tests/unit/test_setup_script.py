"""What the set-up script asks of the packages is there."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = (ROOT / "ops" / "setup.sh").read_text(encoding="utf-8")
IMPORTS = re.findall(r"^from (\S+) import (\w+)$", SCRIPT, re.MULTILINE)


def test_the_script_imports_something() -> None:
    assert IMPORTS


@pytest.mark.parametrize(("module", "name"), IMPORTS)
def test_what_the_script_imports_exists(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(module), name)


def test_what_the_script_installs_has_the_judges_packages() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra in ("quickstart", "quickstart-gpu"):
        assert extra in SCRIPT
        (ours,) = (pin for pin in extras[extra] if pin.startswith("millrace["))
        assert "judge" in ours.removeprefix("millrace[").removesuffix("]").split(",")
