"""Tensors in safetensors files of bounded size: whoever writes a model needs memory for one file of it at most."""

import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
import safetensors
import safetensors.torch
import torch

from schemas.errors import CheckpointCorrupt

_FILE_BYTES = 10**9


class TensorFiles:
    """`<stem>.safetensors`, or as many as it takes: `<stem>-00001-of-00003.safetensors` and so on."""

    def __init__(self, folder: Path, stem: str, *, metadata: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._stem = stem
        self._metadata = dict(metadata or {})
        self._waiting: dict[str, torch.Tensor] = {}
        self._num_bytes = 0
        """That wait."""
        self._parts: list[list[str]] = []

    def add(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Raises `OSError` where they cannot be written."""
        for name, tensor in tensors.items():
            if self._waiting and self._num_bytes + tensor.nbytes > _FILE_BYTES:
                self._write()
            self._waiting[name] = tensor.to("cpu").contiguous()
            self._num_bytes += tensor.nbytes

    def close(self) -> dict[str, str]:
        """Gives the files their names. Returns that of each tensor's.

        Raises:
            OSError: they cannot be written.
        """
        self._write()
        names = dict[str, str]()
        for number, tensors in enumerate(self._parts, start=1):
            several = f"-{number:05d}-of-{len(self._parts):05d}" if len(self._parts) > 1 else ""
            name = f"{self._stem}{several}.safetensors"
            self._part(number).rename(self._folder / name)
            names.update(dict.fromkeys(tensors, name))
        return names

    def _write(self) -> None:
        self._parts.append(list(self._waiting))
        file = self._part(len(self._parts))
        try:
            safetensors.torch.save_file(self._waiting, file, metadata=self._metadata)
        except safetensors.SafetensorError as error:
            found = re.search(r"os error (\d+)", str(error))
            number = int(found[1]) if found else errno.EIO
            raise OSError(number, os.strerror(number), str(file)) from error
        self._waiting, self._num_bytes = {}, 0

    def _part(self, number: int) -> Path:
        return self._folder / f"{self._stem}.part{number}"


def read_tensors(folder: Path, stem: str) -> Iterator[tuple[str, torch.Tensor]]:
    """What `TensorFiles` wrote, one after the other. Raises `CheckpointCorrupt`: never written, or damaged."""
    files = sorted([*folder.glob(f"{stem}.safetensors"), *folder.glob(f"{stem}-[0-9]*-of-*.safetensors")])
    if not files:
        raise CheckpointCorrupt(f"{folder}/{stem}.safetensors is missing: it was written without, or is gone")
    for file in files:
        try:
            with safetensors.safe_open(file, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118 - it is no dictionary
                    yield name, opened.get_tensor(name)
        except (OSError, safetensors.SafetensorError) as error:
            raise CheckpointCorrupt(f"{file} cannot be read: {error}") from error


def write_tensors(folder: Path, stem: str, layers: Iterable[Mapping[str, torch.Tensor]]) -> dict[str, str]:
    """Writes them all. Returns the name of each tensor's file.

    Raises:
        OSError: they cannot be written.
    """
    files = TensorFiles(folder, stem, metadata={"format": "pt"})
    for layer in layers:
        files.add(layer)
    return files.close()


def write_weights(folder: Path, layers: Iterable[Mapping[str, torch.Tensor]]) -> None:
    """Writes a model's weights as transformers and vLLM read them.

    Raises:
        OSError: they cannot be written.
    """
    names = write_tensors(folder, "model", layers)
    files = sorted(set(names.values()))
    if len(files) > 1:
        size = sum((folder / file).stat().st_size for file in files)
        index = {"metadata": {"total_size": size}, "weight_map": names}
        (folder / "model.safetensors.index.json").write_bytes(msgspec.json.encode(index))
