"""Formats of other people's data, one a file: each makes conversations of a file or folder, and tells what it cannot read.

@reader("pairs")
def read_pairs(path: Path, findings: Findings, options: ReadingOptions) -> Iterator[Found]:
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        with findings.record(path, number):
            yield Found(path, number, pair_in(line))
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from ops.sft.conversation import Conversation
from ops.sft.findings import Findings


@dataclass(frozen=True, slots=True)
class Found:
    """A conversation, and where it stands."""

    file: Path
    record: int
    """From 1."""
    conversation: Conversation


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    dataset: str = ""
    """Of LLaMA-Factory: a name in dataset_info.json; empty: all that stand there."""


Reader = Callable[[Path, Findings, ReadingOptions], Iterator[Found]]
_READERS: dict[str, Reader] = {}


def reader(name: str) -> Callable[[Reader], Reader]:
    """Declares the reader of a format."""

    def declare(made: Reader) -> Reader:
        _READERS[name] = made
        return made

    return declare


def reader_of(name: str) -> Reader:
    """Of one of `FORMATS`."""
    import_module(f"ops.sft.formats.{name}")
    return _READERS[name]
