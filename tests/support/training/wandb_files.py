"""What the real wandb wrote offline, read back: LevelDB's log format around protobuf records."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import wandb
from wandb.proto import wandb_internal_pb2

_BLOCK = 32 * 1024
_HEADER = 7
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def offline_files(folder: Path) -> list[Path]:
    """Ends wandb's own process first: a finished run is told so before its last rows are in its file."""
    wandb.teardown()
    return sorted(folder.glob("wandb/offline-run-*/run-*.wandb"))


def history(folder: Path) -> list[dict[str, object]]:
    """Every logged row of every offline run in a folder, oldest first."""
    rows: list[dict[str, object]] = []
    for path in offline_files(folder):
        for record in _records(path):
            if record.HasField("history"):
                items = record.history.item
                rows.append({item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items})
    return rows


def run_records(folder: Path) -> list[object]:
    """The `run` record of each offline run: id, name, project, configuration."""
    return [record.run for path in offline_files(folder) for record in _records(path) if record.HasField("run")]


def _records(path: Path) -> Iterator[wandb_internal_pb2.Record]:
    data, offset, parts = path.read_bytes(), _HEADER, b""
    while offset + _HEADER <= len(data):
        left = _BLOCK - offset % _BLOCK
        if left < _HEADER:
            offset += left
            continue
        _, length, kind = struct.unpack("<IHB", data[offset : offset + _HEADER])
        parts += data[offset + _HEADER : offset + _HEADER + length]
        offset += _HEADER + length
        if kind in (_FULL, _LAST):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(parts)
            yield record
            parts = b""
