"""ShareGPT for LLaMA-Factory, as WebGym's training used it: one sample a step of a successful episode.

A sample is the prompt as the policy saw it, `<image>` for every screenshot, and the response as the last turn.
`dataset_info.json` beside it describes the columns to LLaMA-Factory; screenshots are files, their paths relative to the folder
(its `media_dir`).
"""

import json

import structlog

from ops.archive.durable import make_folder
from ops.archive.exports.played import Played, PlayedStep
from ops.archive.exports.prompts import PLACEHOLDERS, Asked, prompts
from ops.archive.formats import FormatOptions, exporter
from ops.archive.screenshots import ScreenshotStore, screenshot_path
from schemas.errors import ConfigurationError
from schemas.messages import Screenshot

_log = structlog.get_logger()
_TAGS = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
    "system_tag": "system",
}
_INFO = {
    "millrace": {
        "file_name": "sharegpt.json",
        "formatting": "sharegpt",
        "columns": {"messages": "messages", "images": "images"},
        "tags": _TAGS,
    }
}


@exporter("sharegpt")
class ShareGptFormat:
    """Satisfies `Format`."""

    def __init__(self, options: FormatOptions) -> None:
        self._options = options
        make_folder(options.folder / "screenshots")
        self._screenshots = ScreenshotStore(options.folder / "screenshots")
        self._file = (options.folder / "sharegpt.json").open("w", encoding="utf-8")
        self._num_samples = 0

    def add(self, played: Played) -> int:
        if not played.is_success:
            return 0
        before = self._num_samples
        for asked in prompts(played, self._options.context, self._options.model):
            if self._options.wants(asked.step) and not _spells_placeholder(asked.step):
                self._write(asked)
        return self._num_samples - before

    def _write(self, asked: Asked) -> None:
        if asked.reason:
            raise ConfigurationError(asked.reason)
        if asked.window is None or asked.prompt is None:
            return
        messages = [*asked.prompt, {"role": "assistant", "content": asked.step.request.response}]
        screenshots = [part for message in asked.window.messages for part in message.content if isinstance(part, Screenshot)]
        sample = {
            "messages": messages,
            "images": [f"screenshots/{screenshot_path(self._screenshots.put(one))}" for one in screenshots],
        }
        self._file.write(("[\n" if self._num_samples == 0 else ",\n") + json.dumps(sample, ensure_ascii=False))
        self._num_samples += 1

    def close(self) -> None:
        self._file.write("[]\n" if self._num_samples == 0 else "\n]\n")
        self._file.close()
        info = json.dumps(_INFO, indent=2) + "\n"
        (self._options.folder / "dataset_info.json").write_text(info, encoding="utf-8")


def _spells_placeholder(step: PlayedStep) -> bool:
    """A response that LLaMA-Factory would misread cannot be trained on as it was sampled."""
    found = any(placeholder in step.request.response for placeholder in PLACEHOLDERS)
    if found:
        _log.warning("step_left_out", episode=step.request.episode, step=step.request.step, reason="spells a placeholder")
    return found
