"""A Hugging Face dataset folder: one row per step, screenshots as an Image feature, the splits as files.

`datasets.load_dataset(folder)` reads it; so does the Hub when the folder is uploaded.
"""

import pyarrow as pa

from ops.archive.exports.played import Played
from ops.archive.exports.prompts import prompts
from ops.archive.exports.row_file import RowFile
from ops.archive.exports.step_rows import MESSAGES, STEP_FIELDS, STEPS, step_row
from ops.archive.formats import FormatOptions, exporter
from ops.archive.screenshots import screenshot_name
from schemas.messages import Split

_SCREENSHOT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_SCHEMA = pa.schema([("screenshot", _SCREENSHOT), *STEP_FIELDS])
_DTYPES = {
    pa.string(): ("dtype: string",),
    pa.int64(): ("dtype: int64",),
    pa.float64(): ("dtype: float64",),
    pa.bool_(): ("dtype: bool",),
    MESSAGES: ("list:", "- name: role", "  dtype: string", "- name: content", "  dtype: string"),
    STEPS: ("list: int64",),
}
"""How the card says each."""


@exporter("hf")
class HuggingFaceFormat:
    """Satisfies `Format`."""

    def __init__(self, options: FormatOptions) -> None:
        self._options = options
        self._files: dict[Split, RowFile] = {}

    def add(self, played: Played) -> int:
        options = self._options
        steps = [asked for asked in prompts(played, options.context, options.model) if options.wants(asked.step)]
        for asked in steps:
            screenshot = asked.step.observation.screenshot
            shown = {"screenshot": {"bytes": screenshot.data, "path": screenshot_name(screenshot)}}
            self._file(played.task.split).add(shown | step_row(played, asked), len(screenshot.data))
        return len(steps)

    def _file(self, split: Split) -> RowFile:
        if split not in self._files:
            self._files[split] = RowFile(self._options.folder / "data" / f"{split.value}.parquet", _SCHEMA)
        return self._files[split]

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        counts = {split: self._files[split].num_rows for split in Split if split in self._files}
        (self._options.folder / "README.md").write_text(_card(counts), encoding="utf-8")


def _card(counts: dict[Split, int]) -> str:
    """The dataset card; its YAML head tells `datasets` files and features."""
    lines = ["---", "pretty_name: Web agent steps", "configs:", "- config_name: default", "  data_files:"]
    for split in counts:
        lines += [f"  - split: {split.value}", f"    path: data/{split.value}.parquet"]
    lines += ["dataset_info:", "  features:", "  - name: screenshot", "    dtype: image"]
    for name, kind in STEP_FIELDS:
        lines += [f"  - name: {name}", *(f"    {line}" for line in _DTYPES[kind])]
    lines += ["---", "", "# Web agent steps", ""]
    lines += ["One row a step of an episode: the screenshot the policy saw, its prompt, its answer, and what the episode was"]
    lines += ["worth. `<image>` in a prompt stands for the screenshot of a step of `prompt_screenshots`, in their order."]
    lines += ["", "| split | steps |", "|---|---|", *(f"| {split.value} | {count} |" for split, count in counts.items())]
    return "\n".join(lines) + "\n"
