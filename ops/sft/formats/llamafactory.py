"""LLaMA-Factory's folder: dataset_info.json says which files there are and what their columns and tags are called."""

from collections.abc import Iterator, Mapping
from dataclasses import fields as fields_of
from dataclasses import replace
from pathlib import Path

from ops.sft.fields import Fields, decoded, fields_in, note_unread, text_in
from ops.sft.findings import BadRecord, Findings
from ops.sft.formats import Found, ReadingOptions, reader
from ops.sft.formats.sharegpt import Layout, read_file
from ops.sft.images import image_finder
from ops.sft.json_files import DATASET_INFO, data_files
from schemas.errors import ConfigurationError

_NAMES = frozenset(each.name for each in fields_of(Layout))


@reader("llamafactory")
def read_llamafactory(path: Path, findings: Findings, options: ReadingOptions) -> Iterator[Found]:
    """`path`: the folder, or its dataset_info.json. Paths of images are relative to the folder, as its `media_dir` is.

    Raises:
        ConfigurationError: the file cannot be read, or describes nothing that can be.
    """
    info = path / DATASET_INFO if path.is_dir() else path
    for name, described in _datasets(info, options.dataset).items():
        layout, files = _layout(described, f"{info}, {name}", findings), _files(info.parent, described, f"{info}, {name}")
        for file in files:
            yield from read_file(file, layout, image_finder(info.parent), findings)


def _datasets(info: Path, wanted: str) -> Mapping[str, Fields]:
    try:
        described = fields_in(decoded(info.read_bytes(), "it"), "it")
        found = {str(name): fields_in(value, str(name)) for name, value in described.items()}
    except OSError as error:
        raise ConfigurationError(
            f"{info} cannot be read ({error.strerror}): name the folder of a {DATASET_INFO}, or that file"
        ) from error
    except BadRecord as error:
        raise ConfigurationError(f"{info} describes no data sets: {error}") from error
    if wanted and wanted not in found:
        raise ConfigurationError(f"{info} has no data set {wanted!r}: write --dataset with one of {', '.join(found)}")
    return {wanted: found[wanted]} if wanted else found


def _layout(described: Fields, where: str, findings: Findings) -> Layout:
    formatting = described.get("formatting", "alpaca")
    if formatting != "sharegpt":
        raise ConfigurationError(
            f"{where} is of formatting {formatting!r:.40}, and sharegpt is read: name another with --dataset; data in "
            "OpenAI's form is read by --from openai"
        )
    note_unread(described, ("file_name", "formatting", "columns", "tags"), findings, f"{DATASET_INFO}: ")
    try:
        columns = fields_in(described.get("columns") or {}, "columns")
        tags = fields_in(described.get("tags") or {}, "tags")
        named = {str(key): text_in(value, str(key)) for key, value in {**columns, **tags}.items()}
    except BadRecord as error:
        raise ConfigurationError(f"{where}: {error}") from error
    findings.ignore(*(f"{DATASET_INFO}: {key}" for key in named if key not in _NAMES))
    return replace(Layout(), **{key: value for key, value in named.items() if key in _NAMES and value})


def _files(folder: Path, described: Fields, where: str) -> list[Path]:
    name = described.get("file_name")
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{where} has no file_name: download the data set, and name its file there")
    return data_files(folder / name, ".json", ".jsonl")
