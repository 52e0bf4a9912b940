"""Data sets of the Hugging Face Hub, as their Parquet files: a row a conversation, images inside or beside.

A column `messages` is read as OpenAI's form, `conversations` as ShareGPT's; a column `images` holds what their placeholders
stand for, as structs of `bytes` and `path`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ops.sft.conversation import Conversation
from ops.sft.fields import Fields, fields_in
from ops.sft.findings import BadRecord, Findings
from ops.sft.formats import Found, ReadingOptions, openai, reader, sharegpt
from ops.sft.images import FindImage, image_finder
from ops.sft.json_files import data_files
from schemas.errors import ConfigurationError
from schemas.extras import require_extra

_ROWS_AT_ONCE = 16


@reader("huggingface")
def read_huggingface(path: Path, findings: Findings, options: ReadingOptions) -> Iterator[Found]:
    """Of a folder, all `.parquet` files. Raises `ConfigurationError` where one cannot be read."""
    del options
    require_extra("pyarrow", "archive")
    for file in data_files(path, ".parquet"):
        find = image_finder(file.parent)
        for number, row in enumerate(_rows(file), start=1):
            with findings.record(file, number):
                yield Found(file, number, _conversation(fields_in(row, "the row"), find, findings))


def _rows(file: Path) -> Iterator[object]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=_ROWS_AT_ONCE):
                yield from map(_without_nulls, batch.to_pylist())
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ConfigurationError(f"{file} cannot be read as Parquet: {error}") from error


def _without_nulls(value: object) -> object:
    """Arrow gives every struct the fields of all others in its column, as nulls: a call's arguments those of all tools."""
    match value:
        case Mapping():
            return {name: _without_nulls(part) for name, part in value.items() if part is not None}
        case list():
            return [_without_nulls(part) for part in value]
        case _:
            return value


def _conversation(row: Fields, find: FindImage, findings: Findings) -> Conversation:
    if "messages" in row:
        return openai.conversation_of(row, find, findings)
    if "conversations" in row:
        return sharegpt.conversation_of(row, sharegpt.Layout(), find, findings)
    raise BadRecord(f"it has neither messages nor conversations, but {', '.join(map(str, row)) or 'nothing'}")
