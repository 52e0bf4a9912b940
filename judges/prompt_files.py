"""A judge's prompts from text files: a folder is one version of them.

Invariant: what is put in for a placeholder is never read for placeholders itself.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from string import Template

from schemas.errors import ConfigurationError

Placeholders = Mapping[str, frozenset[str]]
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


def read_prompts(folder: Traversable, placeholders: Placeholders, *, example: str) -> Prompts:
    """Those of a folder, whose name is their version; `example` is one that holds all of them, for error texts.

    Raises:
        ConfigurationError: a file or a placeholder is missing, one is not known, or a file cannot be read.
    """
    where = f"the judge's prompts in {folder}"
    if not folder.is_dir():
        raise ConfigurationError(f"{where}: there is no such folder: write one that holds {_files(placeholders)}")
    there = {entry.name.removesuffix(".txt"): entry for entry in folder.iterdir() if entry.name.endswith(".txt")}
    if missing := placeholders.keys() - there.keys():
        raise ConfigurationError(f"{where}: {_files(missing)} is missing: copy it from {example}")
    if unknown := there.keys() - placeholders.keys():
        raise ConfigurationError(f"{where}: {_files(unknown)} is read by nobody: the files are {_files(placeholders)}")
    texts = {name: _text(there[name], where) for name in placeholders}
    for name, text in texts.items():
        _check(text, placeholders[name], f"{where}: {name}.txt")
    return Prompts(folder.name, _digest(texts), texts)


def _text(file: Traversable, where: str) -> str:
    try:
        return file.read_text(encoding="utf-8").rstrip("\n")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{where}: {file.name} is not UTF-8: {error}") from error
    except OSError as error:
        raise ConfigurationError(f"{where}: {file.name} cannot be read ({error.strerror}): put a text there") from error


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


def _files(names: Iterable[str]) -> str:
    return ", ".join(f"{name}.txt" for name in sorted(names))


def _placeholders(names: frozenset[str]) -> str:
    return ", ".join(f"${name}" for name in sorted(names))
