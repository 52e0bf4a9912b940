"""Records of published files, one at a time: JSON lines, JSON, CSV, TSV and Parquet, by the file's ending.

A record that cannot be read is a problem in its place; what follows it is read on where that can be.
"""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import msgspec

from schemas.errors import ConfigurationError
from schemas.extras import require_extra
from trainer.feeding.problems import Unfit
from trainer.feeding.task_files import text_lines
from trainer.feeding.task_values import decoded, worded

_ROWS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Record:
    file: Path
    place: str
    """As in `line 3`, `entry 3` of a JSON list, `row 3` of a Parquet file."""
    fields: dict[str, Any] | Unfit
    """Or why it cannot be read."""


def records(file: Path) -> Iterator[Record]:
    """Raises `ConfigurationError` where the file cannot be read at all."""
    read = _READERS.get(file.suffix.lower())
    if read is None:
        raise ConfigurationError(f"{file} ends in none of {', '.join(_READERS)}: name a file as the benchmark publishes it")
    try:
        for place, value in read(file):
            fields = value if isinstance(value, dict | Unfit) else Unfit("not an object with the fields of one task")
            yield Record(file, place, fields)
    except OSError as error:
        why = error.strerror or str(error)
        raise ConfigurationError(f"{file} cannot be read ({why}): name a file that was downloaded") from error


def _json_lines(file: Path) -> Iterator[tuple[str, object]]:
    for number, text in text_lines(file):
        yield f"line {number}", text if isinstance(text, Unfit) else _decoded(text)


def _json(file: Path) -> Iterator[tuple[str, object]]:
    """A list of records, or, as some publish it, lines of them."""
    content = file.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if not content.lstrip().startswith(b"["):
        yield from _json_lines(file)
        return
    try:
        entries = msgspec.json.decode(content, type=list[msgspec.Raw])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{file} is no JSON list of tasks ({error}): download it again") from error
    for number, entry in enumerate(entries, start=1):
        try:
            text = bytes(entry).decode()
        except UnicodeDecodeError as error:
            yield f"entry {number}", Unfit(f"not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8")
        else:
            yield f"entry {number}", _decoded(text)


def _decoded(text: str) -> object:
    try:
        return decoded(text)
    except Unfit as error:
        return error


def _csv(file: Path) -> Iterator[tuple[str, object]]:
    return _separated(file, ",")


def _tsv(file: Path) -> Iterator[tuple[str, object]]:
    return _separated(file, "\t")


def _separated(file: Path, separator: str) -> Iterator[tuple[str, object]]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        yield from _rows(file, lines, separator)


def _rows(file: Path, lines: TextIO, separator: str) -> Iterator[tuple[str, object]]:
    reader = csv.reader(lines, delimiter=separator, strict=True)
    names: list[str] = []
    try:
        for row in reader:
            place = f"line {reader.line_num}"
            if not names:
                names = _header(file, row)
            elif row and len(row) != len(names):
                yield place, Unfit(f"{len(row)} values for {len(names)} columns")
            elif row:
                yield place, worded(dict(zip(names, row, strict=True)))
    except (csv.Error, UnicodeDecodeError) as error:
        # Where the next row begins nobody knows.
        yield f"line {reader.line_num + 1}", Unfit(f"cannot be read ({error}), nor what follows; download the file again")


def _header(file: Path, row: list[str]) -> list[str]:
    names = [str(worded(name.strip())) for name in row]
    if len(set(names)) < len(names) or not all(names):
        raise ConfigurationError(f"{file} begins with no line of column names, each once: download it again")
    return names


def _parquet(file: Path) -> Iterator[tuple[str, object]]:
    require_extra("pyarrow", "archive")
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=_ROWS_AT_ONCE):
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number}", worded(_pruned(row))
    except (OSError, GeneratorExit):
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{file} cannot be read as Parquet behind row {number} ({error}): download it again"
        ) from error


def _pruned(value: Any) -> Any:
    """Without the fields of inner objects that only other rows have: Parquet gives them all to every row, as null."""
    match value:
        case dict():
            return {key: _inner(part) for key, part in value.items()}
        case list():
            return [_inner(part) for part in value]
        case _:
            return value


def _inner(value: Any) -> Any:
    if isinstance(value, dict):
        value = {key: part for key, part in value.items() if part is not None}
    return _pruned(value)


_READERS: dict[str, Callable[[Path], Iterator[tuple[str, object]]]] = {
    ".jsonl": _json_lines,
    ".json": _json,
    ".csv": _csv,
    ".tsv": _tsv,
    ".parquet": _parquet,
}
