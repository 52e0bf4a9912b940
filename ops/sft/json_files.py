"""Records of JSON files: one a line, all in one list, or one alone over many lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ops.sft.fields import Fields, decoded, fields_in
from ops.sft.findings import BadRecord, Findings
from schemas.errors import ConfigurationError

_MARK = b"\xef\xbb\xbf"
"""Of UTF-8, before a file's text."""
DATASET_INFO = "dataset_info.json"
"""Of LLaMA-Factory: describes the data beside it, and holds none."""


@dataclass(frozen=True, slots=True)
class JsonRecord:
    file: Path
    number: int
    """From 1."""
    offset: int
    """Of a line in its file, in bytes; -1: the file is read whole."""
    fields: Fields


def json_records(file: Path, findings: Findings) -> Iterator[JsonRecord]:
    """Every record of a file of lines, or of one that is a list or one record; what is none becomes a problem.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    try:
        with file.open("rb") as opened:
            is_list = opened.read(4096).lstrip(_MARK + b" \t\r\n").startswith(b"[")
        if is_list or (alone := _alone(file)) is None:
            yield from _listed(file, findings) if is_list else _lines(file, findings)
        else:
            yield JsonRecord(file, 1, -1, alone)
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be read ({error.strerror}): name a file of records, or their folder"
        ) from error


def record_at(record: JsonRecord) -> Fields:
    """The fields of a record of lines, read again. Raises `BadRecord` where the file has changed."""
    with record.file.open("rb") as opened:
        opened.seek(record.offset)
        return fields_in(decoded(opened.readline().removeprefix(_MARK).strip(), "it"), "the record")


def _alone(file: Path) -> Fields | None:
    """The one record of a `.json` file that is not one of lines."""
    if file.suffix != ".json":
        return None
    with file.open("rb") as opened:
        first = next((line for line in opened if line.removeprefix(_MARK).strip()), b"")
    if _record_in(first) is not None:
        return None
    return _record_in(file.read_bytes())


def _record_in(data: bytes) -> Fields | None:
    try:
        return fields_in(decoded(data.removeprefix(_MARK), "it"), "it")
    except BadRecord:
        return None


def _lines(file: Path, findings: Findings) -> Iterator[JsonRecord]:
    offset = number = 0
    with file.open("rb") as opened:
        for line in opened:
            here, offset = offset, offset + len(line)
            said = line.removeprefix(_MARK).strip() if here == 0 else line.strip()
            if not said:
                continue
            number += 1
            found: list[Fields] = []
            with findings.record(file, number):
                found.append(fields_in(decoded(said, "it"), "the record"))
            for fields in found:
                yield JsonRecord(file, number, here, fields)


def _listed(file: Path, findings: Findings) -> Iterator[JsonRecord]:
    records: object = ()
    with findings.record(file, 1):
        records = decoded(file.read_bytes().removeprefix(_MARK), "it")
    assert isinstance(records, list | tuple)
    for number, value in enumerate(records, start=1):
        found: list[Fields] = []
        with findings.record(file, number):
            found.append(fields_in(value, "the record"))
        for fields in found:
            yield JsonRecord(file, number, -1, fields)


def data_files(path: Path, *suffixes: str) -> list[Path]:
    """The file, or the files of data with these suffixes in a folder, by name.

    Raises:
        ConfigurationError: there is none.
    """
    if path.is_file():
        return [path]
    found = path.rglob("*") if path.is_dir() else ()
    files = sorted(file for file in found if file.suffix in suffixes and file.name != DATASET_INFO and file.is_file())
    if not files:
        raise ConfigurationError(f"{path} holds no {' or '.join(suffixes)} file: name a file of records, or their folder")
    return files
