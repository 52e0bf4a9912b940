"""Attention over packed sequences, as an implementation that transformers' models can be told to use.

Invariant: the result is that of attending to every sequence alone. On a GPU in half precision one kernel serves all sequences;
elsewhere, and for screenshots of few sizes, those of equal length that stand together are served side by side. Without a
packing it is torch's attention.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.varlen import varlen_attn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from trainer.model.packing import Packing

Function = TypeVar("Function", bound=Callable[..., Any])
PACKED = "packed"
"""What `attn_implementation` is called."""
_MOST_RUNS = 4
"""Of screenshots, that are served one after the other."""
_FASTEST = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""First; cuDNN's kernel takes six tenths of the time of the one for packed sequences on an H200, but torch has it without
packing."""


def as_it_is(function: Function) -> Function:
    """Not compiled with the layer that calls it."""
    kept: Function = torch.compiler.disable(function)  # type: ignore[no-untyped-call]
    return kept


def register() -> None:
    """Makes the implementation known to transformers; any number of times."""
    AttentionInterface.register(PACKED, packed_attention)
    AttentionMaskInterface.register(PACKED, sdpa_mask)


@as_it_is
def packed_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float,
    dropout: float = 0.0,
    sequences: Packing | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """transformers calls it, with all (1, heads, rows, width) where `sequences` are packed."""
    if sequences is None:
        plain: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **others
        )
        return plain
    rows = tuple(tensor[0].transpose(0, 1) for tensor in (query, key, value))
    return attend(rows[0], rows[1], rows[2], sequences, causal=True, scale=scaling)[None], None


@as_it_is
def attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, packing: Packing, *, causal: bool, scale: float
) -> torch.Tensor:
    """All (rows, heads, width); keys and values have fewer heads where several queries share one."""
    if query.is_cuda and query.dtype in (torch.bfloat16, torch.float16):
        if causal or len(packing.runs) > _MOST_RUNS:
            return _attend_in_one_kernel(query, key, value, packing, causal=causal, scale=scale)
        with sdpa_kernel(_FASTEST, set_priority=True):
            return _attend_runs(query, key, value, packing, causal=causal, scale=scale)
    return _attend_runs(query, key, value, packing, causal=causal, scale=scale)


def _attend_runs(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, packing: Packing, *, causal: bool, scale: float
) -> torch.Tensor:
    if len(packing.runs) == 1:
        return _attend_run(packing.runs[0], query, key, value, causal=causal, scale=scale)
    sizes = [count * length for count, length in packing.runs]
    parts = (torch.split(tensor, sizes) for tensor in (query, key, value))
    found = [_attend_run(*run, causal=causal, scale=scale) for run in zip(packing.runs, *parts, strict=True)]
    return torch.cat(found)


def _attend_run(
    run: tuple[int, int], query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, causal: bool, scale: float
) -> torch.Tensor:
    """Sequences of equal length, side by side."""
    query, key, value = (tensor.reshape(*run, *tensor.shape[1:]).transpose(1, 2) for tensor in (query, key, value))
    shared = key.shape[1] != query.shape[1]
    attended = functional.scaled_dot_product_attention(query, key, value, is_causal=causal, scale=scale, enable_gqa=shared)
    return attended.transpose(1, 2).flatten(0, 1)


def _attend_in_one_kernel(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, packing: Packing, *, causal: bool, scale: float
) -> torch.Tensor:
    ends = packing.ends(query.device)
    found = varlen_attn(
        query,
        key,
        value,
        ends,
        ends,
        packing.longest,
        packing.longest,
        scale=scale,
        window_size=(-1, 0) if causal else (-1, -1),
        enable_gqa=key.shape[1] != query.shape[1],
    )
    assert isinstance(found, torch.Tensor)
    return found
