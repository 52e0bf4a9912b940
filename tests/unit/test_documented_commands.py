"""Every command line in the documentation is one that the programs accept, down to its last key."""

import importlib.util

import pytest

from ops.cli import parse
from ops.config.loading import load_config
from tests.support.texts.documented_commands import Line, documented

_MODULES = [line for line in documented("python") if line.words[0] == "-m"]


@pytest.mark.parametrize("line", documented("millrace"), ids=str)
def test_the_command_accepts_its_arguments(line: Line) -> None:
    options = parse(list(line.words))
    # Names of workers may stand among the overrides.
    load_config("update_online", [given for given in getattr(options, "overrides", []) if "=" in given])


@pytest.mark.parametrize("line", _MODULES, ids=str)
def test_the_module_exists(line: Line) -> None:
    assert importlib.util.find_spec(line.words[1]) is not None
