"""Memory in bytes: of a training rank, of a policy's GPU, of the hosts. Pure arithmetic.

ZeRO (Rajbhandari et al. 2020, arXiv 1910.02054, section 5) divides optimizer (stage 1), gradients (2) and parameters (3) by
the ranks. In bf16 the optimizer has float32 weights and two moments, 12 bytes a parameter, and 4 more for the gradients of its
own share while it steps; in float32 the weights are the model's own, and it has the moments alone.
"""

from dataclasses import dataclass, field

from ops.planning.gpus import GIB
from ops.planning.model_size import ModelSize

_CONTEXT = 1.5 * GIB
"""CUDA's own, kernels, and what is lost between blocks."""
_FILE = 1e9
"""Of a version; see `trainer.model.tensor_files`."""
_FLOAT32 = 4
_MOMENTS = 2
_STATES = 2
"""Of a sequence in an engine, where layers keep one: the newest, and the one that is kept for the next prompt with the same
beginning."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a model is trained."""

    size: ModelSize
    num_trained: int
    """Parameters that have gradients: all that are not frozen, or those of adapters."""
    num_served: int
    """Parameters in a version, as policies get it."""
    dtype_bytes: int
    stage: int
    num_ranks: int
    tokens: int
    """Of the longest micro-batch: prompts and completions."""
    completion_tokens: int
    """Of those, the ones that are trained on."""
    num_patches: int
    """Of the screenshots in it."""
    checkpoints_activations: bool
    trains_vision: bool = True
    num_engines: int = 1
    """Policy, and critic where there is one."""
    has_reference: bool = False
    bucket: int = 0
    """Elements that are sent at once."""
    offloads_optimizer: bool = False
    offloads_parameters: bool = False


@dataclass(frozen=True)
class Need:
    """Bytes by what they are for."""

    parts: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(self.parts.values())


def rank_gpu(plan: Training) -> Need:
    """One rank's GPU at its fullest: the backward pass, or the optimizer's step."""
    weights, engines = plan.size.num_parameters * plan.dtype_bytes, plan.num_engines
    shared = weights / plan.num_ranks if plan.stage == 3 else float(weights)
    gathered = 2 * plan.size.largest_layer * plan.dtype_bytes if plan.stage == 3 else 0
    if plan.offloads_parameters:
        shared = 0.0
    gradients = plan.num_trained * plan.dtype_bytes / (plan.num_ranks if plan.stage >= 2 else 1)
    optimizer = 0.0 if plan.offloads_optimizer else _optimizer_bytes(plan) / plan.num_ranks
    return Need(
        {
            "weights": engines * shared + gathered,
            "gradients": engines * gradients,
            "optimizer": engines * optimizer,
            "reference": shared if plan.has_reference else 0.0,
            "sent at once": 2.0 * plan.bucket * plan.dtype_bytes if plan.num_ranks > 1 else 0.0,
            "activations": _activations(plan),
            "logits": _logits(plan),
            "CUDA": _CONTEXT,
        }
    )


def rank_host(plan: Training) -> Need:
    """One rank's host at its fullest: when a model is read, by layers under ZeRO-3, or when a version is written by files."""
    weights = plan.size.num_parameters * plan.dtype_bytes
    layer = plan.size.largest_layer * plan.dtype_bytes
    offloaded = plan.num_engines * _optimizer_bytes(plan) / plan.num_ranks if plan.offloads_optimizer else 0.0
    return Need(
        {
            "Python, torch": 2 * GIB,
            "a model on its way": max(layer if plan.stage == 3 else weights, layer + _FILE),
            "offloaded": offloaded + (weights / plan.num_ranks if plan.offloads_parameters else 0.0),
        }
    )


def version_disk(plan: Training) -> Need:
    """The files of one version."""
    master = _FLOAT32 if plan.dtype_bytes != _FLOAT32 else 0
    served = plan.num_served * plan.dtype_bytes
    engines = plan.num_engines - 1
    state = plan.num_trained * (master + _MOMENTS * _FLOAT32)
    return Need({"for policies": served, "for the trainer": state + engines * (state + served)})


def _optimizer_bytes(plan: Training) -> float:
    """Of all ranks together."""
    low = plan.dtype_bytes != _FLOAT32
    return plan.num_trained * _FLOAT32 * (_MOMENTS + (2 if low else 0))


def _activations(plan: Training) -> float:
    """What one layer keeps of a token for its backward pass: inputs of both norms and of both sums, queries, keys, values,
    what attention gives, and four of the width between. Checkpointed, every layer keeps its input, and one is whole at a time,
    with its gradients. What sees keeps nothing where it is frozen."""
    size, value = plan.size, plan.dtype_bytes
    layer = value * (6 * size.hidden + 2 * size.query + 2 * size.key_value + 4 * size.intermediate)
    vision_layer = value * 18 * size.vision_hidden
    if plan.checkpoints_activations:
        text, seen = size.num_layers * size.hidden * value + 2 * layer, size.vision_layers * size.vision_hidden * value
        seen += 2 * vision_layer
    else:
        text, seen = size.num_layers * layer, size.vision_layers * vision_layer
    return plan.tokens * text + plan.num_patches * (seen if plan.trains_vision else vision_layer)


def _logits(plan: Training) -> float:
    """`trainer.model.chosen_logprobs`: logits, probabilities in float32, and the gradients of both."""
    return float(plan.completion_tokens * plan.size.vocabulary * (2 * plan.dtype_bytes + 2 * _FLOAT32))


@dataclass(frozen=True, kw_only=True)
class Serving:
    """How a policy worker holds a model."""

    size: ModelSize
    dtype_bytes: int
    num_parts: int
    """GPUs that share it."""
    memory: float
    """Bytes of one GPU that the engine takes."""
    tokens_a_step: int
    """Of a step of the engine."""
    key_value_bytes: int
    """Of one number in the cache."""


def serving_gpu(plan: Serving) -> Need:
    """One GPU of a policy; what is left of `memory` holds keys and values."""
    size = plan.size
    weights = size.num_parameters * plan.dtype_bytes / plan.num_parts
    widest = size.hidden * 4 + (size.query + 2 * size.key_value + 3 * size.intermediate) / plan.num_parts
    step = plan.tokens_a_step * widest * plan.dtype_bytes
    return Need(
        {
            "weights": weights,
            "a step": step + _FLOAT32 * size.vocabulary * 1024,
            "CUDA": _CONTEXT,
            "keys and values": max(0.0, plan.memory - weights - step - _FLOAT32 * size.vocabulary * 1024 - _CONTEXT),
        }
    )


def cached_tokens(plan: Serving) -> int:
    """Of the longest sequence that fits in a policy's GPUs."""
    return max(0, int((serving_gpu(plan).parts["keys and values"] - _state_bytes(plan)) / _token_bytes(plan)))


def sequences_at_once(plan: Serving, length: int) -> int:
    """Of so many tokens each."""
    return int(serving_gpu(plan).parts["keys and values"] / (length * _token_bytes(plan) + _state_bytes(plan)))


def _token_bytes(plan: Serving) -> float:
    """Of its keys and values, on one GPU; heads are divided as far as they go."""
    shares = min(plan.num_parts, plan.size.key_value_heads)
    return 2 * plan.size.attending_layers * plan.size.key_value * plan.key_value_bytes / shares


def _state_bytes(plan: Serving) -> float:
    """Of a sequence, on one GPU."""
    return _STATES * plan.size.state_bytes / plan.num_parts
