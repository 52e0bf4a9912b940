"""Builds samples for one model: its processor cuts the screenshots, its own code places the tokens; no weights are needed."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from transformers import AutoConfig, AutoImageProcessor, AutoModelForImageTextToText

from schemas.errors import UnusableRecord
from schemas.messages import RecordRef, StepRequest
from trainer.model.model_folder import suppressed_tokens
from trainer.samples import LeftOut, Patches, Sample, token_versions


class SampleBuilder:
    """Builds samples for the model in `folder`; holds its processor and its positions, not its weights."""

    def __init__(self, folder: Path, *, cutoff_len: int) -> None:
        config = AutoConfig.from_pretrained(folder)
        self._images = AutoImageProcessor.from_pretrained(folder)
        # On the meta device: get_rope_index is a method of the model, but needs no weights.
        with torch.device("meta"):
            self._model = AutoModelForImageTextToText.from_config(config).model
        self._num_tokens = int(config.get_text_config().vocab_size)
        self._image_token = int(config.image_token_id)
        self._merge = int(config.vision_config.spatial_merge_size)
        self._suppressed = frozenset(suppressed_tokens(folder))
        self._cutoff_len = cutoff_len
        self._frames = int(self._images.temporal_patch_size)

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
        screenshots = [_opened(data) for data in encoded]
        cut = self._images(images=screenshots, do_rescale=False, do_normalize=False, return_tensors="pt")
        grids = [tuple(grid) for grid in cut["image_grid_thw"].tolist()]
        pixels = cut["pixel_values"].to(torch.uint8)
        channels = len(self._images.image_mean)
        still = pixels.view(len(pixels), channels, self._frames, -1)[:, :, 0].reshape(len(pixels), -1).numpy()
        ends = np.cumsum([t * rows * columns for t, rows, columns in grids])
        parts = np.split(still, ends[:-1])
        return [Patches(np.ascontiguousarray(part), grid) for part, grid in zip(parts, grids, strict=True)]

    def build(self, ref: RecordRef, step: StepRequest, screenshots: Sequence[Patches]) -> Sample:
        """Builds one sample from a step without a `refusal` and the screenshots of its prompt, in order.

        Raises:
            UnusableRecord: the prompt's image placeholders do not fit the screenshots.
        """
        tokens = np.array((*step.prompt_tokens, *step.completion_tokens), dtype=np.int64)
        is_image = tokens == self._image_token
        expected = sum(t * rows * columns for t, rows, columns in (p.grid for p in screenshots)) // self._merge**2
        if int(is_image.sum()) != expected:
            raise UnusableRecord(
                f"step {step.step} of {step.episode} has {int(is_image.sum())} image tokens, but its {len(screenshots)} "
                f"screenshots make {expected}: the policy and the trainer use different processor settings; give both the "
                "same model folder"
            )
        grids = torch.tensor([screenshot.grid for screenshot in screenshots], dtype=torch.long) if screenshots else None
        positions, _ = self._model.get_rope_index(
            torch.from_numpy(tokens)[None],
            mm_token_type_ids=torch.from_numpy(is_image.astype(np.int32))[None],
            image_grid_thw=grids,
        )
        return Sample(
            ref=ref,
            tokens=tokens.astype(np.int32),
            num_prompt=len(step.prompt_tokens),
            positions=positions[:, 0].numpy().astype(np.int32),
            logprobs=np.array(step.logprobs, dtype=np.float32),
            temperature=step.temperature if step.temperature > 0 else 1.0,
            screenshots=tuple(screenshots),
            versions=token_versions(step),
        )


def _opened(data: bytes) -> Image.Image:
    try:
        return Image.open(io.BytesIO(data)).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise UnusableRecord(f"a screenshot cannot be opened: {error}") from error
