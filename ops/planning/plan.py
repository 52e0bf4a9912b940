"""Decides what each process of a run needs on a machine, whether it fits, and with what other setting it would."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ops.launch.node_file import Share
from ops.planning.gpus import Gpu
from ops.planning.memory import Need, Serving, Training, cached_tokens, rank_gpu, rank_host, version_disk
from ops.planning.model_size import ModelSize
from ops.roles.deepspeed_trainer import engine_settings
from schemas.config import Config
from schemas.messages import Role
from trainer.engine.deepspeed_config import DeepSpeedConfig
from trainer.estimators import traits_of

_SESSION_BYTES = 200 << 20
"""Of one browser session, everything included: measured at 16 at once."""
_POLICY_HOST_BYTES = 6 << 30
"""Of a policy process beside its GPU: Python, vLLM, and a file of weights that is being read."""
_STEP_TOKENS = 8192
"""Of one step of vLLM's engine, as it chooses by itself."""
_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
_ROOM = 0.97
"""Of a GPU's memory; the rest is nobody's."""
_LORA_RANK = 16


@dataclass(frozen=True, kw_only=True)
class Machine:
    gpu: Gpu
    host_memory: float = 0.0
    """Bytes; 0: not known."""


@dataclass(frozen=True)
class Problem:
    sentence: str
    remedies: tuple[str, ...] = ()
    """Settings with each of which it would fit."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Of one machine."""

    config: Config
    size: ModelSize
    machine: Machine
    shares: tuple[Share, ...]
    training: Training | None
    serving: Serving | None
    problems: tuple[Problem, ...] = ()

    @property
    def num_policies(self) -> int:
        return _count(self.shares, Role.POLICY)

    @property
    def shares_gpus(self) -> bool:
        """Whether a policy sees a GPU that a training rank has too."""
        policy, trainer = (_gpus(self.shares, role) for role in (Role.POLICY, Role.TRAINER))
        return bool(policy & trainer)

    @property
    def num_sequences(self) -> int:
        """Answers at once that have `policy_config.max_model_len` tokens each, of one policy."""
        assert self.serving is not None
        return cached_tokens(self.serving) // self.config.policy_config.max_model_len

    @property
    def host(self) -> Need:
        """Of the machine, all processes together."""
        parts: dict[str, float] = {}
        if self.training is not None:
            parts["trainer"] = self.training.num_ranks * rank_host(self.training).total
        if self.serving is not None:
            parts["policies"] = float(self.num_policies * _POLICY_HOST_BYTES)
        browsers = _count(self.shares, Role.BROWSER) * self.config.env_config.server_size
        return Need({**parts, "browsers": float(browsers * _SESSION_BYTES)})

    @property
    def kept_on_disk(self) -> float:
        """Bytes of the versions that are kept, and of the one that is being written."""
        assert self.training is not None
        return (self.config.trainer_config.keep_checkpoints + 1) * version_disk(self.training).total


def plan(config: Config, size: ModelSize, machine: Machine, shares: Sequence[Share]) -> Plan:
    """Raises `ConfigurationError`: the DeepSpeed file cannot be used."""
    training = _training(config, size, shares) if _count(shares, Role.TRAINER) else None
    serving = _serving(config, size, machine) if _count(shares, Role.POLICY) else None
    made = Plan(config=config, size=size, machine=machine, shares=tuple(shares), training=training, serving=serving)
    return replace(made, problems=tuple(_problems(made)))


def _count(shares: Sequence[Share], role: Role) -> int:
    return sum(share.count for share in shares if share.role is role)


def _gpus(shares: Sequence[Share], role: Role) -> set[str]:
    return {gpu for share in shares if share.role is role for entry in share.gpus for gpu in entry.split(",")}


def _training(config: Config, size: ModelSize, shares: Sequence[Share]) -> Training:
    algorithm, policy, lora = config.algorithm_config, config.policy_config, config.trainer_config.lora
    deepspeed = engine_settings(config).deepspeed
    samples, most = algorithm.per_device_train_batch_size, algorithm.max_tokens_per_micro_batch
    length = algorithm.cutoff_len
    if most:
        samples = min(samples, max(1, most // length))
    browser, screenshots = config.browser_config, config.context_config.num_rounds + 1
    patches = screenshots * size.patches(browser.viewport_width, browser.viewport_height)
    zero = deepspeed.settings["zero_optimization"]
    adapters = sum(size.linear.get(name, 0) for name in lora.targets) * lora.rank
    return Training(
        size=size,
        num_trained=adapters if lora.active else size.num_parameters,
        dtype_bytes=_BYTES[deepspeed.dtype],
        stage=deepspeed.stage,
        num_ranks=_count(shares, Role.TRAINER),
        tokens=samples * length,
        completion_tokens=samples * min(policy.max_new_tokens, length),
        num_patches=samples * min(patches, length * size.patches_a_token),
        checkpoints_activations=deepspeed.checkpoints_activations,
        num_engines=2 if traits_of(config.objective_config).critic else 1,
        has_reference=config.objective_config.needs_reference and not lora.active,
        bucket=int(zero.get("reduce_bucket_size", 500_000_000)),
        offloads_optimizer=_offloads(deepspeed, "offload_optimizer"),
        offloads_parameters=_offloads(deepspeed, "offload_param"),
    )


def _offloads(deepspeed: DeepSpeedConfig, key: str) -> bool:
    device: str = deepspeed.settings["zero_optimization"].get(key, {}).get("device", "none")
    return device != "none"


def _serving(config: Config, size: ModelSize, machine: Machine) -> Serving:
    policy = config.policy_config
    dtype_bytes = size.dtype_bytes if policy.dtype == "auto" else _BYTES[policy.dtype]
    cache = str(policy.vllm_args.get("kv_cache_dtype", "auto"))
    return Serving(
        size=size,
        dtype_bytes=dtype_bytes,
        num_parts=policy.num_parts,
        memory=policy.gpu_memory_utilization * machine.gpu.memory,
        tokens_a_step=int(policy.vllm_args.get("max_num_batched_tokens", _STEP_TOKENS)),
        key_value_bytes=1 if cache.startswith("fp8") else dtype_bytes,
    )


def _problems(made: Plan) -> Iterator[Problem]:
    gpu, policy = made.machine.gpu, made.config.policy_config
    rank = rank_gpu(made.training).total if made.training is not None else 0.0
    served = policy.gpu_memory_utilization * gpu.memory if made.serving is not None and made.shares_gpus else 0.0
    if rank > _ROOM * gpu.memory:
        sentence = f"a training rank needs {gib(rank)} of a GPU's {gib(gpu.memory)}"
        yield Problem(sentence, _remedies(made, _training_changes(made), _rank_fits))
    elif rank + served > _ROOM * gpu.memory:
        sentence = f"a training rank ({gib(rank)}) and a policy ({gib(served)}) share a GPU of {gib(gpu.memory)}"
        share = int((0.95 * gpu.memory - rank) / gpu.memory * 100) / 100
        yield Problem(sentence, _remedies(made, _sharing_changes(made, share), _gpu_is_shared))
    if made.serving is not None and made.num_sequences < 1:
        sentence = (
            f"a policy's cache has room for {cached_tokens(made.serving):,} tokens, and "
            f"policy_config.max_model_len is {policy.max_model_len:,}"
        )
        yield Problem(sentence, _remedies(made, _serving_changes(made), lambda other: other.num_sequences >= 1))
    if made.machine.host_memory and made.host.total > made.machine.host_memory:
        yield Problem(f"the host needs {gib(made.host.total)} of {gib(made.machine.host_memory)}")


_Change = tuple[str, Config]
"""As overrides say it, and what it makes of the configuration."""


def _remedies(made: Plan, changes: Sequence[_Change], fits: Callable[[Plan], bool]) -> tuple[str, ...]:
    found = []
    for said, config in changes:
        other = replace(
            made,
            config=config,
            training=_training(config, made.size, made.shares) if made.training is not None else None,
            serving=_serving(config, made.size, made.machine) if made.serving is not None else None,
        )
        if fits(other):
            found.append(said)
    return tuple(found)


def _rank_fits(made: Plan) -> bool:
    assert made.training is not None
    served = made.config.policy_config.gpu_memory_utilization * made.machine.gpu.memory if made.shares_gpus else 0.0
    return rank_gpu(made.training).total + min(served, 0.3 * made.machine.gpu.memory) <= _ROOM * made.machine.gpu.memory


def _gpu_is_shared(made: Plan) -> bool:
    assert made.training is not None
    served = made.config.policy_config.gpu_memory_utilization * made.machine.gpu.memory
    whole = rank_gpu(made.training).total + served <= _ROOM * made.machine.gpu.memory
    return whole and made.num_sequences >= 1


def _training_changes(made: Plan) -> list[_Change]:
    """One by one, then all that cost nothing but time together."""
    config = made.config
    algorithm, trainer = config.algorithm_config, config.trainer_config
    file = algorithm.deepspeed_config_filename
    changes: list[_Change] = []

    def add(said: str, **groups: object) -> None:
        changes.append((said, replace(config, **groups)))  # type: ignore[arg-type]

    stages = [re.sub(r"zero\d", f"zero{stage}", file) for stage in (2, 3)]
    for name in stages:
        if name != file and re.search(r"zero\d", file):
            key = f"algorithm_config.deepspeed_config_filename={name}"
            add(key, algorithm_config=replace(algorithm, deepspeed_config_filename=name))
    small = replace(algorithm, per_device_train_batch_size=1)
    said = "algorithm_config.per_device_train_batch_size=1"
    if algorithm.per_device_train_batch_size > 1:
        add(said, algorithm_config=small)
        for name in stages:
            if name != file and re.search(r"zero\d", file):
                key = f"{said} algorithm_config.deepspeed_config_filename={name}"
                add(key, algorithm_config=replace(small, deepspeed_config_filename=name))
    if not trainer.lora.active:
        lora = replace(trainer, lora=replace(trainer.lora, rank=_LORA_RANK))
        add(f"trainer_config.lora.rank={_LORA_RANK}", trainer_config=lora)
        add(f"{said} trainer_config.lora.rank={_LORA_RANK}", trainer_config=lora, algorithm_config=small)
    return changes


def _sharing_changes(made: Plan, share: float) -> list[_Change]:
    if share <= 0:
        return []
    policy = replace(made.config.policy_config, gpu_memory_utilization=share)
    return [(f"policy_config.gpu_memory_utilization={share:g}", replace(made.config, policy_config=policy))]


def _serving_changes(made: Plan) -> list[_Change]:
    policy = made.config.policy_config
    num_tokens = cached_tokens(made.serving) // 1024 * 1024 if made.serving is not None else 0
    changes: list[_Change] = []
    for parts in (2, 4, 8):
        if parts > policy.num_parts:
            args = {**policy.vllm_args, "tensor_parallel_size": parts}
            said = f"policy_config.vllm_args.tensor_parallel_size={parts}"
            changes.append((said, replace(made.config, policy_config=replace(policy, vllm_args=args))))
    if num_tokens > policy.max_new_tokens:
        said = f"policy_config.max_model_len={num_tokens}"
        changes.append((said, replace(made.config, policy_config=replace(policy, max_model_len=num_tokens))))
    return changes


def gib(num_bytes: float) -> str:
    return f"{num_bytes / (1 << 30):.1f} GiB"
