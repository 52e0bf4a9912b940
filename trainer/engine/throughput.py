"""Computes the arithmetic that training on a sample takes, and the share of the device's peak that is reached.

Counted as usual for model FLOPs utilisation: what the model needs, forward once and backward twice that; activations that
checkpointing computes again do not count, nor do norms, activation functions, rotary positions and looked-up embeddings.

A matrix product costs 2 FLOPs a parameter and token, so 6 a parameter with the backward pass. To these come, a layer,
4 * length^2 * heads * width for attention (half of that where it is causal), likewise times 3. The output layer is computed at
completion tokens alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from trainer.samples import Sample

_PASSES = 3
"""Forward, and backward, which costs twice as much."""

_PEAK_TFLOPS = {
    "GB200": 2500.0,
    "B300": 2250.0,
    "B200": 2250.0,
    "H200": 989.4,
    "H100 PCIe": 756.0,
    "H100 NVL": 835.0,
    "H100": 989.4,
    "A100": 312.0,
    "L40S": 362.0,
    "L4": 121.0,
    "RTX 4090": 165.2,
    "RTX 3090": 71.0,
    "A10": 125.0,
}
"""bf16 with float32 accumulation, dense, by a part of the device's name, from the makers' data sheets."""


@dataclass(frozen=True)
class Work:
    """Of some samples."""

    tokens: int
    """Of prompts and completions."""
    completion_tokens: int
    flops: float


@dataclass(frozen=True)
class ModelCost:
    """FLOPs of one forward pass through a Qwen3-VL."""

    a_token: float
    a_squared_length: float
    """Causal attention, all layers."""
    a_completion_token: float
    a_patch: float
    a_squared_frame: float
    """Attention within one screenshot's frame, all layers."""

    @classmethod
    def of(cls, config: Any) -> "ModelCost":
        """From the model's own configuration."""
        text, vision = config.text_config, config.vision_config
        heads = text.num_attention_heads * text.head_dim
        shared = text.num_key_value_heads * text.head_dim
        layer = text.hidden_size * (2 * heads + 2 * shared + 3 * text.intermediate_size)
        width, merge = vision.hidden_size, vision.spatial_merge_size**2
        values = vision.in_channels * vision.temporal_patch_size * vision.patch_size**2
        block = width * (4 * width + 2 * vision.intermediate_size)
        merger = (merge * width) * (merge * width + vision.out_hidden_size) / merge
        mergers = 1 + len(vision.deepstack_visual_indexes)
        return cls(
            a_token=2.0 * layer * text.num_hidden_layers,
            a_squared_length=2.0 * heads * text.num_hidden_layers,
            a_completion_token=2.0 * text.hidden_size * text.vocab_size,
            a_patch=2.0 * (values * width + block * vision.depth + merger * mergers),
            a_squared_frame=4.0 * width * vision.depth,
        )

    def work(self, samples: Sequence[Sample]) -> Work:
        """Of training on these samples once."""
        return Work(
            tokens=sum(len(sample.tokens) for sample in samples),
            completion_tokens=sum(sample.num_completion for sample in samples),
            flops=_PASSES * sum(self._forward(sample) for sample in samples),
        )

    def _forward(self, sample: Sample) -> float:
        length = len(sample.tokens)
        flops = length * self.a_token + length**2 * self.a_squared_length + sample.num_completion * self.a_completion_token
        for frames, rows, columns in (screenshot.grid for screenshot in sample.screenshots):
            flops += frames * rows * columns * self.a_patch + frames * (rows * columns) ** 2 * self.a_squared_frame
        return flops


def peak_flops(device: torch.device, configured_tflops: float) -> float:
    """FLOPs a second of one device: `configured_tflops`, or a known GPU's; 0 when nobody knows."""
    if configured_tflops > 0 or device.type != "cuda":
        return configured_tflops * 1e12
    name = torch.cuda.get_device_name(device)
    return known_tflops(name) * 1e12


def known_tflops(name: str) -> float:
    """Of a device, by its name; 0 when nobody knows."""
    return next((tflops for part, tflops in _PEAK_TFLOPS.items() if part.lower() in name.lower()), 0.0)
