"""What the set-up script asks of the packages is there."""

import importlib
import re
from pathlib import Path

import pytest

SCRIPT = (Path(__file__).parents[2] / "ops" / "setup.sh").read_text(encoding="utf-8")
IMPORTS = re.findall(r"^from (\S+) import (\w+)$", SCRIPT, re.MULTILINE)


def test_the_script_imports_something() -> None:
    assert IMPORTS


@pytest.mark.parametrize(("module", "name"), IMPORTS)
def test_what_the_script_imports_exists(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(module), name)
