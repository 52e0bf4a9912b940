"""Builds samples for one model: its processor cuts the screenshots, its own code places the tokens; no weights are needed."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from transformers import AutoConfig, AutoImageProcessor

from schemas.errors import UnusableRecord
from schemas.messages import RecordRef, StepRequest
from trainer.model.families import family_of
from trainer.model.model_folder import suppressed_tokens
from trainer.pictures import opened
from trainer.samples import LeftOut, Patches, Sample, token_versions


class SampleBuilder:
    """Builds samples for the model in `folder`; holds its processor and its positions, not its weights."""

    def __init__(self, folder: Path, *, cutoff_len: int) -> None:
        config = AutoConfig.from_pretrained(folder)
        self._images = AutoImageProcessor.from_pretrained(folder)
        self._family = family_of(config)
        self._num_tokens = int(config.get_text_config().vocab_size)
        self._image_token = int(config.image_token_id)
        self._suppressed = frozenset(suppressed_tokens(folder))
        self._cutoff_len = cutoff_len

    def refusal(self, step: StepRequest) -> LeftOut | None:
        """Why no sample can be built of a step, as far as the step itself tells; None when one can."""
        if not step.completion_tokens or not step.prompt_tokens or not self._suppressed.isdisjoint(step.completion_tokens):
            return LeftOut.UNUSABLE
        if max(*step.prompt_tokens, *step.completion_tokens) >= self._num_tokens:
            return LeftOut.UNUSABLE
        if len(step.prompt_tokens) + len(step.completion_tokens) > self._cutoff_len:
            return LeftOut.TOO_LONG
        return None

    def patches(self, encoded: Sequence[bytes]) -> list[Patches]:
        """Cuts encoded screenshots as the model's processor does. Raises `UnusableRecord` where one cannot be opened."""
        if not encoded:
            return []
        return self._family.cut(self._images, [_opened(data) for data in encoded])

    def build(self, ref: RecordRef, step: StepRequest, screenshots: Sequence[Patches]) -> Sample:
        """Builds one sample from a step without a `refusal` and the screenshots of its prompt, in order.

        Raises:
            UnusableRecord: the prompt's image placeholders do not fit the screenshots.
        """
        tokens = np.array((*step.prompt_tokens, *step.completion_tokens), dtype=np.int64)
        is_image = tokens == self._image_token
        grids = [screenshot.grid for screenshot in screenshots]
        expected = sum(frames * rows * columns for frames, rows, columns in grids) // self._family.patches_a_token
        if int(is_image.sum()) != expected:
            raise UnusableRecord(
                f"step {step.step} of {step.episode} has {int(is_image.sum())} image tokens, but its {len(screenshots)} "
                f"screenshots make {expected}: the policy and the trainer use different processor settings; give both the "
                "same model folder"
            )
        return Sample(
            ref=ref,
            tokens=tokens.astype(np.int32),
            num_prompt=len(step.prompt_tokens),
            positions=self._family.positions(tokens, is_image, grids),
            logprobs=np.array(step.logprobs, dtype=np.float32),
            temperature=step.temperature if step.temperature > 0 else 1.0,
            screenshots=tuple(screenshots),
            versions=token_versions(step),
        )


def _opened(data: bytes) -> Image.Image:
    try:
        return opened(data)
    except ValueError as error:
        raise UnusableRecord(str(error)) from error
