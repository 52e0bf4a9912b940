"""Metrics and sampled episodes as TensorBoard event files. A restart hides what an earlier trainer wrote behind the announced
versions, so that no step is there twice.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from schemas.errors import ConfigurationError
from trainer.tracking import Row, ShownEpisode

_MOST_SCREENSHOTS = 24


class TensorBoardFiles:
    """A `Backend`."""

    def __init__(self, folder: Path, next_version: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder), purge_step=next_version)

    def log(self, row: Row) -> None:
        for name, value in row.metrics.items():
            tag = name if row.evaluates else f"train/{name}"
            self._writer.add_scalar(tag, value, row.version)
        self._writer.flush()

    def show(self, version: int, episodes: Sequence[ShownEpisode]) -> None:
        files: Any = self._writer.file_writer
        screenshots = 0
        for number, episode in enumerate(episodes):
            self._writer.add_text(f"episode {number}", _text(episode), version)
            for index, step in enumerate(episode.steps):
                if step.screenshot and screenshots < _MOST_SCREENSHOTS:
                    screenshots += 1
                    files.add_summary(_picture(f"episode {number}/step {index}", step.screenshot), version)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


def require_tensorboard() -> None:
    """Raises `ConfigurationError` when it is not installed."""
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "algorithm_config.report_to has tensorboard, which is not installed: pip install tensorboard, or leave it out"
        ) from error


def _picture(tag: str, screenshot: bytes) -> Any:
    """The JPEG as it is: the library's own `add_image` makes a PNG, five times as large."""
    from tensorboard.compat.proto.summary_pb2 import Summary

    with Image.open(io.BytesIO(screenshot)) as opened:
        width, height = opened.size
    image = Summary.Image(width=width, height=height, colorspace=3, encoded_image_string=screenshot)
    return Summary(value=[Summary.Value(tag=tag, image=image)])


def _text(episode: ShownEpisode) -> str:
    """Indented as code: TensorBoard renders Markdown, and the words may come from a page."""
    lines = [
        f"{episode.verdict}, reward {episode.reward}, {episode.outcome}: {episode.instruction}",
        *(f"{index}. {step.action} <- {step.response}" for index, step in enumerate(episode.steps, 1)),
    ]
    return "\n".join("    " + " ".join(line.split()) for line in lines)
