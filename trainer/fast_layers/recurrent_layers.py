"""Recurrent layers over packed sequences: each sequence begins without a past.

Qwen3.5's gated delta rule (and the convolution before it) would carry one sequence's state into the next: transformers knows
packed sequences only where a kernel library for GPUs is installed. Sequences of equal length that stand together are served
side by side; what looks at every row alone sees all of them at once.

Invariant: each part of a layer is called once, whatever is packed. Under ZeRO-3 all ranks fetch its parameters together.
"""

from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers.models.qwen3_5.modeling_qwen3_5 import causal_conv1d_fn, torch_chunk_gated_delta_rule

from trainer.model.packing import Packing


def packed_recurrent_layers(model: nn.Module) -> int:
    """Replaces the forward pass of every gated delta rule in `model`; returns how many there were."""
    layers = [module for module in model.modules() if type(module).__name__.endswith("GatedDeltaNet")]
    for layer in layers:
        layer.forward = MethodType(_each_alone, layer)
    return len(layers)


def _each_alone(layer: Any, hidden_states: torch.Tensor, *, sequences: Packing | None = None, **others: Any) -> torch.Tensor:
    """(1, rows, width) to the same shape where `sequences` are packed; otherwise as ever."""
    if sequences is None:
        plain: torch.Tensor = type(layer).forward(layer, hidden_states, **others)
        return plain
    rows = hidden_states[0]
    strength = layer.in_proj_b(rows).sigmoid()
    decay = -layer.A_log.float().exp() * functional.softplus(layer.in_proj_a(rows).float() + layer.dt_bias)
    sizes = [count * length for count, length in sequences.runs]
    parts = (torch.split(each, sizes) for each in (layer.in_proj_qkv(rows), strength, decay))
    kernel = layer.conv1d.weight.squeeze(1)
    found = torch.cat([_remembered(layer, kernel, *each) for each in zip(sequences.runs, *parts, strict=True)])
    gate = layer.in_proj_z(rows).reshape(-1, layer.head_v_dim)
    gated = layer.norm(found.reshape(-1, layer.head_v_dim), gate)
    output: torch.Tensor = layer.out_proj(gated.reshape(len(rows), -1))
    return output[None]


def _remembered(
    layer: Any, kernel: torch.Tensor, run: tuple[int, int], mixed: torch.Tensor, strength: torch.Tensor, decay: torch.Tensor
) -> torch.Tensor:
    """What sequences of equal length recall, side by side: (rows, value heads, width)."""
    folded = mixed.view(*run, -1).transpose(1, 2)
    folded = causal_conv1d_fn(folded, kernel, layer.conv1d.bias, activation=layer.activation).transpose(1, 2)
    query, key, value = torch.split(folded, [layer.key_dim, layer.key_dim, layer.value_dim], dim=-1)
    query, key = (each.reshape(*run, layer.num_k_heads, -1) for each in (query, key))
    shared = layer.num_v_heads // layer.num_k_heads
    found, _ = torch_chunk_gated_delta_rule(
        query.repeat_interleave(shared, dim=2),
        key.repeat_interleave(shared, dim=2),
        value.reshape(*run, layer.num_v_heads, -1),
        g=decay.view(*run, -1),
        beta=strength.view(*run, -1),
        use_qk_l2norm_in_kernel=True,
    )
    recalled: torch.Tensor = found.flatten(0, 1)
    return recalled
