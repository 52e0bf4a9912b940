"""Computes the arithmetic that training on a sample takes, and the share of the device's peak that is reached.

Counted as usual for model FLOPs utilisation: what the model needs, forward once and backward twice that; activations that
checkpointing computes again do not count, nor do norms, activation functions, rotary positions and looked-up embeddings.

A matrix product costs 2 FLOPs a parameter and token, so 6 a parameter with the backward pass; of experts those count that a
token is sent to. To these come, a layer, 4 * length^2 * heads * width for attention (half of that where it is causal),
likewise times 3. The output layer is computed at completion tokens alone. What a recurrent layer does with its state is left
out.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn
from transformers import AutoModelForImageTextToText

from trainer.model.families import family_of
from trainer.samples import Sample

T = TypeVar("T")

_PASSES = 3
"""Forward, and backward, which costs twice as much."""

EXPERTS = ".experts."
"""In the names of parameters of experts that a token is sent to some of; of one that sees every token it is another."""
_ADDED = re.compile("position_embeddings|cls_token|mask_token")
"""Parameters that nothing is multiplied with."""
_MERGING = re.compile("^linear_[12]|^merger|merger_list|downsample|^layer_norm")
"""Parameters of a vision tower behind the merging of patches to image tokens."""

_PEAK_TFLOPS = {
    "GB200": 2500.0,
    "B300": 2250.0,
    "B200": 2250.0,
    "GH200": 989.4,
    "H200 NVL": 835.0,
    "H200": 989.4,
    "H100 PCIe": 756.0,
    "H100 NVL": 835.0,
    "H100": 989.4,
    "A100": 312.0,
    "L40S": 362.0,
    "L40": 181.0,
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
    """FLOPs of one forward pass."""

    a_token: float
    a_squared_length: float
    """Causal attention, all layers."""
    a_completion_token: float
    a_patch: float
    a_squared_frame: float
    """Attention within one screenshot's frame, all layers."""
    screenshot_passes: int = _PASSES
    """Of what a screenshot's patches go through; 1 where that is frozen, since nothing before it is trained."""

    @classmethod
    def of(cls, config: Any) -> "ModelCost":
        """From the model's own configuration."""
        with torch.device("meta"):
            return cls.counted(config, AutoModelForImageTextToText.from_config(config).model)

    @classmethod
    def counted(cls, config: Any, model: nn.Module) -> "ModelCost":
        """Of the part of a model below its output layer, which needs no memory."""
        text, vision = config.text_config, config.vision_config
        layers = getattr(text, "layer_types", None) or ["full_attention"] * text.num_hidden_layers
        head = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        language: Any = model.language_model
        towers = [part for name, part in model.named_children() if name != "language_model"]
        a_patch, a_merged = (sum(_products(tower, merged=merged) for tower in towers) for merged in (False, True))
        depth = getattr(vision, "depth", None) or vision.num_hidden_layers
        whole, window = _attending(vision, depth)
        return cls(
            a_token=2.0 * _products(language.layers, share=expert_share(text)),
            a_squared_length=2.0 * text.num_attention_heads * head * layers.count("full_attention"),
            a_completion_token=2.0 * text.hidden_size * text.vocab_size,
            a_patch=2.0 * (a_patch + a_merged / family_of(config).patches_a_token) + 4.0 * vision.hidden_size * window,
            a_squared_frame=4.0 * vision.hidden_size * whole,
        )

    def work(self, samples: Sequence[Sample]) -> Work:
        """Of training on these samples once."""
        return Work(
            tokens=sum(len(sample.tokens) for sample in samples),
            completion_tokens=sum(sample.num_completion for sample in samples),
            flops=sum(self._reading(sample) * _PASSES + self._seeing(sample) * self.screenshot_passes for sample in samples),
        )

    def _reading(self, sample: Sample) -> float:
        length = len(sample.tokens)
        return length * self.a_token + length**2 * self.a_squared_length + sample.num_completion * self.a_completion_token

    def _seeing(self, sample: Sample) -> float:
        grids = (screenshot.grid for screenshot in sample.screenshots)
        return sum(
            frames * rows * columns * self.a_patch + frames * (rows * columns) ** 2 * self.a_squared_frame
            for frames, rows, columns in grids
        )


def _products(module: nn.Module, *, share: float = 1.0, merged: bool = False) -> float:
    """Parameters that a token, or a patch, is multiplied with.

    Args:
        share: of the experts, that a token is sent to.
        merged: those of a vision tower that are multiplied with image tokens, or those with patches.
    """
    looked_up = {id(part.weight) for part in module.modules() if isinstance(part, nn.Embedding)}
    return sum(
        parameter.numel() * (share if EXPERTS in name else 1.0)
        for name, parameter in module.named_parameters()
        if parameter.dim() > 1 and id(parameter) not in looked_up and not _ADDED.search(name)
        if bool(_MERGING.search(name)) == merged
    )


def expert_share(text: Any) -> float:
    """Of a language model's experts, that a token is sent to."""
    chosen, count = getattr(text, "num_experts_per_tok", None), getattr(text, "num_experts", None)
    return chosen / count if chosen and count else 1.0


def _attending(vision: Any, depth: int) -> tuple[int, int]:
    """Layers in which a patch attends to its whole frame, and to how many patches it does in all others together."""
    whole = getattr(vision, "fullatt_block_indexes", None)
    if whole is None:
        return depth, 0
    return len(whole), (depth - len(whole)) * (vision.window_size // vision.patch_size) ** 2


def peak_flops(device: torch.device, configured_tflops: float) -> float:
    """FLOPs a second of one device: `configured_tflops`, or a known GPU's; 0 when nobody knows."""
    if configured_tflops > 0 or device.type != "cuda":
        return configured_tflops * 1e12
    name = torch.cuda.get_device_name(device)
    return known_tflops(name) * 1e12


def known_tflops(name: str) -> float:
    """Of a device, by its name; 0 when nobody knows."""
    return of_device(_PEAK_TFLOPS, name) or 0.0


def of_device(known: Mapping[str, T], name: str) -> T | None:
    """What is known of a device by whole words of its name, in the order of the table: an L40 is no L4."""
    return next((value for part, value in known.items() if _words(part).search(name)), None)


def _words(part: str) -> re.Pattern[str]:
    """As makers and people write them: `NVIDIA GeForce RTX 4090`, `rtx4090`, `H100-PCIe`."""
    spelled = part.replace(" ", "[ -]*")
    return re.compile(rf"(?<![a-z0-9]){spelled}(?![a-z0-9])", re.IGNORECASE)
