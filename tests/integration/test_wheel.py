"""The wheel holds what the tree holds, and runs from its own files."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("schemas", "bus", "agents", "browser_workers", "judges", "trainer", "ops")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files, as an installer lays them."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a build leaves files behind
    for name in ("pyproject.toml", "README.md"):
        source.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, source)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    build = "from setuptools.build_meta import build_wheel; build_wheel('..')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "unpacked")
    return folder / "unpacked"


def millrace(unpacked: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "ops.cli", *arguments]
    return subprocess.run(command, cwd=unpacked, check=True, capture_output=True, text=True).stdout


def test_every_file_of_the_packages_is_in_it(unpacked: Path) -> None:
    listed = subprocess.run(["git", "ls-files", *PACKAGES], cwd=ROOT, check=True, capture_output=True, text=True)
    assert [name for name in listed.stdout.splitlines() if not (unpacked / name).is_file()] == []


def test_it_names_its_version_and_its_command(unpacked: Path) -> None:
    declared = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared is not None
    assert millrace(unpacked, "--version") == f"millrace {declared[1]}\n"
    (entry_points,) = unpacked.glob("*.dist-info/entry_points.txt")
    assert "millrace = ops.cli:run" in entry_points.read_text()


def test_its_recipes_and_templates_are_read_from_it(unpacked: Path, tmp_path: Path) -> None:
    assert "algorithm_config" in millrace(unpacked, "config", "update_online", "--changed")
    millrace(unpacked, "new", str(tmp_path / "mine"))
    assert (tmp_path / "mine" / "README.md").is_file()
