"""What of a plan does not fit, and the settings with which it would: each is tried by planning anew with it."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ops.launch.node_file import Share
from ops.planning.memory import cached_tokens, rank_gpu
from ops.planning.plan import Plan, gib, planned
from schemas.config import Config
from schemas.messages import Role

_ROOM = 0.97
"""Of a GPU's memory; the rest is nobody's."""
_LEAST_SERVED = 0.3
"""Of a GPU's memory, for a policy that shares it with a training rank."""
_FILE = "algorithm_config.deepspeed_config_filename"
_BATCH = "algorithm_config.per_device_train_batch_size"
_LORA = "trainer_config.lora.rank"
_PARTS = "policy_config.vllm_args.tensor_parallel_size"
Settings = Mapping[str, Any]
"""Values by their keys."""


@dataclass(frozen=True)
class Problem:
    sentence: str
    remedies: tuple[str, ...] = ()
    """Settings with each of which it would fit, as overrides."""


def problems(made: Plan) -> Iterator[Problem]:
    gpu, policy = made.machine.gpu, made.config.policy_config
    rank = rank_gpu(made.training).total if made.training is not None else 0.0
    if rank > _ROOM * gpu.memory:
        sentence = f"a training rank needs {gib(rank)} of a GPU's {gib(gpu.memory)}"
        yield Problem(sentence, _remedies(made, _smaller_training(made), _rank_fits))
    elif not _both_fit(made):
        served = gib(policy.gpu_memory_utilization * gpu.memory)
        sentence = f"a training rank ({gib(rank)}) and a policy ({served}) share a GPU of {gib(gpu.memory)}"
        left = int((_ROOM * gpu.memory - rank) / gpu.memory * 100) / 100
        share = {"policy_config.gpu_memory_utilization": left}
        yield Problem(
            sentence, _remedies(made, [share] if left > 0 else [], lambda other: _both_fit(other) and _serves(other))
        )
    if not _serves(made):
        assert made.serving is not None
        sentence = (
            f"a policy's cache has room for {cached_tokens(made.serving):,} tokens, and "
            f"policy_config.max_model_len is {policy.max_model_len:,}"
        )
        yield Problem(sentence, _remedies(made, _more_cache(made), _serves))
    if made.machine.host_memory and made.host.total > made.machine.host_memory:
        yield Problem(f"the host needs {gib(made.host.total)} of {gib(made.machine.host_memory)}")


def _serves(made: Plan) -> bool:
    return made.serving is None or made.num_sequences >= 1


def _rank_fits(made: Plan) -> bool:
    """Beside as much for a policy as it needs at least, where one shares the GPU."""
    return _fits_beside(made, min(_LEAST_SERVED, made.config.policy_config.gpu_memory_utilization))


def _both_fit(made: Plan) -> bool:
    return _fits_beside(made, made.config.policy_config.gpu_memory_utilization)


def _fits_beside(made: Plan, served: float) -> bool:
    rank = rank_gpu(made.training).total if made.training is not None else 0.0
    return rank + (served if made.shares_gpus else 0.0) * made.machine.gpu.memory <= _ROOM * made.machine.gpu.memory


def _remedies(made: Plan, changes: list[Settings], fits: Callable[[Plan], bool]) -> tuple[str, ...]:
    return tuple(
        " ".join(f"{key}={value}" for key, value in settings.items())
        for settings in changes
        if fits(planned(_changed(made.config, settings), made.size, made.machine, made.shares))
    )


def _smaller_training(made: Plan) -> list[Settings]:
    """One by one, then what costs nothing but time with each of the others."""
    algorithm, lora = made.config.algorithm_config, made.config.trainer_config.lora
    file = algorithm.deepspeed_config_filename
    changes: list[Settings] = [{_FILE: name} for stage in (2, 3) if (name := re.sub(r"zero\d", f"zero{stage}", file)) != file]
    if not lora.active:
        changes.append({_LORA: 16})
    if algorithm.per_device_train_batch_size > 1:
        changes = [*changes, {_BATCH: 1}, *({_BATCH: 1, **settings} for settings in changes)]
    return changes


def _more_cache(made: Plan) -> list[Settings]:
    assert made.serving is not None
    policy, there = made.config.policy_config, _num_gpus(made.shares)
    changes: list[Settings] = [{_PARTS: parts} for parts in (2, 4, 8) if policy.num_parts < parts <= there]
    num_tokens = cached_tokens(made.serving) // 1024 * 1024
    if num_tokens > policy.max_new_tokens:
        changes.append({"policy_config.max_model_len": num_tokens})
    return changes


def _num_gpus(shares: tuple[Share, ...]) -> int:
    """That policies see."""
    return len({gpu for share in shares if share.role is Role.POLICY for entry in share.gpus for gpu in entry.split(",")})


def _changed(config: Config, settings: Settings) -> Config:
    for key, value in settings.items():
        config = _with(config, key.split("."), value)
    return config


def _with(component: Any, path: list[str], value: object) -> Any:
    """A copy of a component, or of a table in it, with another value at a path."""
    name, *below = path
    if isinstance(component, dict):
        return {**component, name: value}
    return replace(component, **{name: _with(getattr(component, name), below, value) if below else value})
