"""What the documentation names exists: commands, configuration keys, files."""

import re
from pathlib import Path

import pytest

from ops.cli import main
from ops.config.schema import known_keys

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
_COMMAND = re.compile(r"\bmillrace ([a-z]+)\b(?= +--|`|\n)")
_KEY = re.compile(r"\b([a-z_]+_config\.(?!json\b)[a-z_0-9]+)\b")
_FILE = re.compile(r"`((?:agents|benchmarks|browser_workers|bus|docs|examples|judges|ops|schemas|tests|trainer)/[\w/.-]+)`")


def mentions(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    return sorted({(page.name, found) for page in PAGES for found in pattern.findall(page.read_text())})


def mentioned_keys() -> list[tuple[str, str]]:
    """The table of other programs' names has a test of its own, of the names that are ours."""
    return [pair for pair in mentions(_KEY) if pair[0] != "configuration_names.md"]


@pytest.mark.parametrize(("page", "command"), mentions(_COMMAND))
def test_commands_exist(page: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0, f"{page} names millrace {command}"
    assert command in capsys.readouterr().out


@pytest.mark.parametrize(("page", "key"), mentioned_keys())
def test_configuration_keys_exist(page: str, key: str) -> None:
    assert any(known == key or known.startswith(f"{key}.") for known in known_keys()), f"{page} names {key}"


@pytest.mark.parametrize(("page", "file"), mentions(_FILE))
def test_files_exist(page: str, file: str) -> None:
    assert (ROOT / file).exists(), f"{page} names {file}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


_MADE = {"configuration_keys.md", "configuration_names.md", "judge_answers.md", "permissions.md"}
"""Pages that programs write."""


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in _MADE], ids=lambda page: page.name)
def test_prose_keeps_to_a_hundred_columns(page: Path) -> None:
    """Tables, code and links may be wider."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    wide = [
        line
        for line in prose.splitlines()
        if len(line) > 100 and not re.match(r"[|<#!]|    ", line) and not re.search(r"\]\(|`[^`]{60,}", line)
    ]
    assert wide == []
