"""A Parquet file that grows row by row, with bounded memory."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_ROWS = 128
_BYTES = 32 * 1024 * 1024


class RowFile:
    """The same rows give the same bytes: a group of rows ends after so many rows or screenshot bytes."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._schema = schema
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._num_bytes = 0
        self.num_rows = 0

    def add(self, row: dict[str, Any], num_bytes: int = 0) -> None:
        self._rows.append(row)
        self._num_bytes += num_bytes
        self.num_rows += 1
        if len(self._rows) >= _ROWS or self._num_bytes >= _BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._rows, self._num_bytes = [], 0

    def close(self) -> None:
        self._flush()
        self._writer.close()
