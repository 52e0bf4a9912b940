"""The rubric's questions from text files: a folder is one version of them.

Invariant: what is put in for a placeholder is never read for placeholders itself.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from schemas.errors import ConfigurationError

PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    "system": frozenset(),
    "task": frozenset({"opening", "closing", "instruction", "website", "difficulty"}),
    "answer": frozenset({"answer"}),
    "facts": frozenset({"facts"}),
    "screenshot": frozenset({"number", "count", "account"}),
    "blocking": frozenset(),
    "keypoint": frozenset(),
    "criterion_b": frozenset(),
    "criterion_a": frozenset({"fact", "group", "difficulty"}),
    "reference": frozenset({"reference"}),
}
"""The files of a version, without `.txt`, and what each must leave room for."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """One version; every file and placeholder is there."""

    version: str
    """Name of the folder."""
    digest: str
    """sha256 of all files."""
    texts: Mapping[str, str]

    def fill(self, name: str, **values: str) -> str:
        """The text of one file with all its placeholders filled, in one pass."""
        return Template(self.texts[name]).substitute(values)


def committed_prompts(version: str) -> Prompts:
    """Those that are part of this package."""
    return _read(resources.files(__name__).joinpath(version), version)


def load_prompts(folder: Path) -> Prompts:
    """Those of a folder.

    Raises:
        ConfigurationError: a file or a placeholder is missing, or one is not known.
    """
    return _read(folder, folder.name)


def _read(folder: Traversable, version: str) -> Prompts:
    where = f"the judge's prompts in {folder}"
    if not folder.is_dir():
        raise ConfigurationError(f"{where}: there is no such folder: write one that holds {_files(PLACEHOLDERS)}")
    there = {entry.name.removesuffix(".txt"): entry for entry in folder.iterdir() if entry.name.endswith(".txt")}
    if missing := PLACEHOLDERS.keys() - there.keys():
        raise ConfigurationError(f"{where}: {_files(missing)} is missing: copy it from judges/rubric/prompts/rubric_v1")
    if unknown := there.keys() - PLACEHOLDERS.keys():
        raise ConfigurationError(f"{where}: {_files(unknown)} is read by nobody: the files are {_files(PLACEHOLDERS)}")
    texts = {name: _text(there[name], where) for name in PLACEHOLDERS}
    for name, text in texts.items():
        _check(text, PLACEHOLDERS[name], f"{where}: {name}.txt")
    return Prompts(version, _digest(texts), texts)


def _text(file: Traversable, where: str) -> str:
    try:
        return file.read_text(encoding="utf-8").rstrip("\n")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{where}: {file.name} is not UTF-8: {error}") from error


def _check(text: str, expected: frozenset[str], file: str) -> None:
    template = Template(text)
    if not text.strip():
        raise ConfigurationError(f"{file} is empty")
    if not template.is_valid():
        raise ConfigurationError(f"{file} has a $ that begins no placeholder: write $$ for the character")
    found = frozenset(template.get_identifiers())
    if missing := expected - found:
        raise ConfigurationError(f"{file} lacks the placeholder {_placeholders(missing)}")
    if unknown := found - expected:
        raise ConfigurationError(f"{file} has {_placeholders(unknown)}, which nothing is put in for")


def _digest(texts: Mapping[str, str]) -> str:
    content = "".join(f"{name}\0{text}\0" for name, text in sorted(texts.items()))
    return hashlib.sha256(content.encode()).hexdigest()


def _files(names: Mapping[str, object] | frozenset[str] | set[str]) -> str:
    return ", ".join(f"{name}.txt" for name in sorted(names))


def _placeholders(names: frozenset[str]) -> str:
    return ", ".join(f"${name}" for name in sorted(names))
