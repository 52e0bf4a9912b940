"""ShareGPT for LLaMA-Factory, as WebGym's training used it: one sample a step of a successful episode.

A sample is the prompt as the policy saw it, `<image>` for every screenshot, and the response as the last turn.
`dataset_info.json` beside it describes the columns to LLaMA-Factory; screenshots are files, their paths relative to the folder
(its `media_dir`).
"""

import json

import structlog

from agents.context import Round, Windows
from agents.engine import ChatMessage
from ops.archive.durable import make_folder
from ops.archive.episodes import IMPORTED
from ops.archive.exports.played import Played, PlayedStep
from ops.archive.formats import FormatOptions, exporter
from ops.archive.screenshots import ScreenshotStore, screenshot_path
from schemas.errors import ConfigurationError
from schemas.messages import Screenshot

_log = structlog.get_logger()
_IMAGE = "<image>"
_PLACEHOLDERS = (_IMAGE, "<video>", "<audio>")
"""What LLaMA-Factory replaces wherever it stands; text of a page must not spell one."""
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
        rounds: list[Round] = []
        for number, step in enumerate(played.steps):
            if step.request.step != number:
                break  # a record before it is gone, and with it the prompt
            if self._options.wants(step) and not _spells_placeholder(step):
                self._write(played, rounds, step)
            rounds.append(Round(step.observation, step.request))
        return self._num_samples - before

    def _write(self, played: Played, rounds: list[Round], step: PlayedStep) -> None:
        options = self._options
        if step.request.worker == IMPORTED:
            raise ConfigurationError(
                f"episode {step.request.episode} is an imported conversation, whose prompts no run built: export it as "
                "parquet, hf or jsonl, or leave it out with another --rubric"
            )
        windows = Windows(played.task, rounds, step.observation, options.context, options.model)
        window = windows.asked_with(step.request)
        if step.request.screenshots and step.request.screenshots != window.screenshots:
            raise ConfigurationError(
                f"step {step.request.step} of episode {step.request.episode} was asked with the screenshots of steps "
                f"{step.request.screenshots}, this prompt would show {window.screenshots}: give the run's own context_config"
            )
        messages = [{"role": message.role, "content": _content(message)} for message in window.messages]
        messages.append({"role": "assistant", "content": step.request.response})
        screenshots = [part for message in window.messages for part in message.content if isinstance(part, Screenshot)]
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
    found = any(placeholder in step.request.response for placeholder in _PLACEHOLDERS)
    if found:
        _log.warning("step_left_out", episode=step.request.episode, step=step.request.step, reason="spells a placeholder")
    return found


def _content(message: ChatMessage) -> str:
    return "".join(_IMAGE if isinstance(part, Screenshot) else _harmless(part) for part in message.content)


def _harmless(text: str) -> str:
    for placeholder in _PLACEHOLDERS:
        text = text.replace(placeholder, placeholder.replace("<", "< "))
    return text
