"""Every replaced computation equals torch's own, values and gradients."""

import contextvars
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import NoReturn

import pytest
import structlog
import torch
from torch import nn
from torch._dynamo import config as dynamo
from torch.nn import functional
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextRMSNorm, apply_rotary_pos_emb_vision

from trainer.fast_layers.compiled_layers import all_compile, compile_layers, compiles
from trainer.fast_layers.linear_layers import linear
from trainer.fast_layers.norms import fast_norms
from trainer.fast_layers.rotary import rotate
from trainer.model.chosen_logprobs import chosen_logprobs
from trainer.model.packed_attention import attend, packed_attention
from trainer.model.packing import Packing

Function = Callable[..., torch.Tensor]


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def assert_equal(ours: Function, theirs: Function, tensors: Sequence[torch.Tensor], atol: float = 1e-5) -> None:
    """Values, and gradients by every tensor."""
    found = []
    for function in (ours, theirs):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        value = function(*leaves)
        gradients = torch.autograd.grad((value * random(*value.shape, seed=9)).sum(), leaves)
        found.append((value, *gradients))
    for left, right in zip(*found, strict=True):
        torch.testing.assert_close(left, right, atol=atol, rtol=1e-4)


@pytest.mark.parametrize("shape", [(5, 3, 7), (64, 48, 16)])
def test_linear_layers(shape: tuple[int, int, int]) -> None:
    rows, width, out = shape
    tensors = [random(2, rows, width), random(out, width), random(out)]
    assert_equal(linear, functional.linear, tensors, atol=1e-4)
    assert_equal(linear, functional.linear, tensors[:2], atol=1e-4)


def test_linear_layers_with_frozen_weights() -> None:
    inputs, weight = random(4, 3).requires_grad_(), random(2, 3)
    (gradient,) = torch.autograd.grad(linear(inputs, weight).sum(), [inputs])
    torch.testing.assert_close(gradient, weight.sum(0).expand(4, 3))


def test_norms() -> None:
    plain, fast = Qwen3VLTextRMSNorm(16), Qwen3VLTextRMSNorm(16)
    assert fast_norms(fast) == 1

    def with_weight(layer: torch.nn.Module) -> Function:
        return lambda inputs, weight: torch.func.functional_call(layer, {"weight": weight}, (inputs,))

    assert_equal(with_weight(fast), with_weight(plain), [random(3, 5, 2, 16), random(16)])
    half = random(4, 16).bfloat16()
    assert torch.equal(fast(half), plain(half))


def test_rotation() -> None:
    angles = random(6, 4)
    cosines, sines = (torch.cat([part, part], -1) for part in (angles.cos(), angles.sin()))

    def theirs(features: torch.Tensor) -> torch.Tensor:
        turned: torch.Tensor = apply_rotary_pos_emb_vision(features, features, cosines, sines)[0]
        return turned

    assert_equal(lambda x: rotate(x, cosines[:, None], sines[:, None]), theirs, [random(6, 3, 8)])


# In a process in which DeepSpeed has divided a model, torch's linear function is one of DeepSpeed's for good.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize("function", [rotate, linear])
def test_within_a_compiled_layer_it_is_the_same(function: Function) -> None:
    tensors = {rotate: [random(6, 3, 8), random(6, 1, 4), random(6, 1, 4)], linear: [random(5, 3), random(2, 3), random(2)]}
    tables = [torch.cat([table, table], -1) for table in tensors[function][1:]] if function is rotate else []

    def called(*leaves: torch.Tensor) -> torch.Tensor:
        return function(leaves[0], *tables) if tables else function(*leaves)

    leaves = tensors[function][:1] if tables else tensors[function]
    assert_equal(torch.compile(called, backend="aot_eager", fullgraph=True), called, leaves)


def test_a_layer_of_a_kind_that_decides_by_what_it_sees_is_not_compiled() -> None:
    class SomeExperts(nn.Module):
        pass

    class Layer(GradientCheckpointingLayer):  # type: ignore[misc]
        def __init__(self, part: nn.Module) -> None:
            super().__init__()
            self.part = part

    layers = nn.ModuleList([Layer(nn.Linear(2, 2)), Layer(SomeExperts()), nn.Linear(2, 2)])
    assert compile_layers(layers, backend="eager") == 1


def test_a_layer_that_cannot_be_compiled_runs_as_it_is_in_every_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    class Layer(GradientCheckpointingLayer):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    def refuse(*_: object) -> NoReturn:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(vars(dynamo)["_config"]["suppress_errors"], "default", False)
    layers = nn.ModuleList([Layer()])
    contextvars.copy_context().run(compile_layers, layers, backend=refuse)  # as each piece of work in a thread has its own
    found = list[torch.Tensor]()
    thread = threading.Thread(target=lambda: found.append(layers[0](torch.ones(2))))
    thread.start()
    thread.join()
    assert [each.tolist() for each in [*found, layers[0](torch.ones(2))]] == [[2.0, 2.0], [2.0, 2.0]]


def test_a_gpu_without_a_compiler_is_said_and_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not torch.cuda.is_available()
    assert not all_compile()

    def refuse(*_: object) -> None:
        raise RuntimeError("Failed to find C compiler\nand more of it")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "compile", lambda _: refuse)
    monkeypatch.setattr(torch, "ones", lambda *_, **__: None)
    with structlog.testing.capture_logs() as said:
        assert not compiles()
    assert [entry["reason"] for entry in said] == ["Failed to find C compiler"]


def test_layers_stay_as_they_are_where_the_compiler_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "compile", lambda function: function)
    monkeypatch.setattr(torch, "ones", lambda *_, **__: torch.zeros(1))
    assert compiles()
    monkeypatch.setattr(dynamo, "disable", True)
    assert not compiles()


def test_chosen_logprobs() -> None:
    labels, temperatures = torch.tensor([0, 3, 5]), torch.tensor([1.0, 0.5, 2.0])
    suppressed = torch.tensor([1, 4])

    def theirs(logits: torch.Tensor) -> torch.Tensor:
        scaled = (logits / temperatures[:, None]).index_fill(-1, suppressed, float("-inf"))
        return scaled.log_softmax(-1).gather(-1, labels[:, None])[:, 0]

    assert_equal(lambda logits: chosen_logprobs(logits, labels, temperatures, suppressed), theirs, [random(3, 6)])


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("lengths", [(4, 4, 4), (5, 3, 3, 1)])
def test_packed_attention_is_that_of_each_sequence_alone(lengths: tuple[int, ...], causal: bool) -> None:
    tensors = [random(sum(lengths), heads, 8, seed=seed) for seed, heads in enumerate((4, 2, 2))]

    def ours(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return attend(query, key, value, Packing(lengths), causal=causal, scale=0.3)

    def theirs(*packed: torch.Tensor) -> torch.Tensor:
        alone = zip(*(torch.split(tensor, list(lengths)) for tensor in packed), strict=True)
        return torch.cat([_by_hand(query, key, value, causal) for query, key, value in alone])

    assert_equal(ours, theirs, tensors)


def _by_hand(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, causal: bool) -> torch.Tensor:
    key, value = (tensor.repeat_interleave(2, dim=1) for tensor in (key, value))
    scores = torch.einsum("qhw,khw->hqk", query, key) * 0.3
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores[0], dtype=torch.bool).triu(1), float("-inf"))
    return torch.einsum("hqk,khw->qhw", scores.softmax(-1), value)


def test_without_packing_it_is_torchs_attention() -> None:
    query, key = random(2, 4, 5, 8), random(2, 2, 5, 8, seed=1)
    layer = SimpleNamespace(is_causal=True, num_key_value_groups=2)
    found, _ = packed_attention(layer, query, key, key, None, scaling=0.3)  # type: ignore[arg-type]
    expected = functional.scaled_dot_product_attention(query, key, key, is_causal=True, scale=0.3, enable_gqa=True)
    torch.testing.assert_close(found, expected.transpose(1, 2))
