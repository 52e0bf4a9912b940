"""What each process of a run needs on a machine."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.vllm_arguments import screenshot_cache_gb, step_tokens
from ops.launch.node_file import Share
from ops.planning.gpus import GIB, Gpu
from ops.planning.memory import Need, Serving, Training, rank_host, sequences_at_once, version_disk
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
_MIB = 1 << 20
_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


@dataclass(frozen=True, kw_only=True)
class Machine:
    gpu: Gpu
    host_memory: float = 0.0
    """Bytes; 0: not known."""
    cores: int = 0
    """Of the host; 0: not known."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Of one machine."""

    config: Config
    size: ModelSize
    machine: Machine
    shares: tuple[Share, ...]
    training: Training | None
    serving: Serving | None

    @property
    def num_policies(self) -> int:
        return _count(self.shares, Role.POLICY)

    @property
    def num_browsers(self) -> int:
        """Workers, each with `env_config.server_size` sessions."""
        return _count(self.shares, Role.BROWSER)

    @property
    def shares_gpus(self) -> bool:
        """Whether a policy sees a GPU that a training rank has too."""
        policy, trainer = (_gpus(self.shares, role) for role in (Role.POLICY, Role.TRAINER))
        return bool(policy & trainer)

    @property
    def num_sequences(self) -> int:
        """Answers at once that have `policy_config.max_model_len` tokens each, of one policy."""
        assert self.serving is not None
        return sequences_at_once(self.serving, self.config.policy_config.max_model_len)

    @property
    def host(self) -> Need:
        """Of the machine, all processes together."""
        parts: dict[str, float] = {}
        if self.training is not None:
            parts["trainer"] = self.training.num_ranks * rank_host(self.training).total
        if self.serving is not None:
            policy = self.config.policy_config
            kept = screenshot_cache_gb(policy) * GIB + policy.history_mb * _MIB
            parts["policies"] = float(self.num_policies * _POLICY_HOST_BYTES)
            parts["policies' screenshots"] = self.num_policies * kept
        browsers = self.num_browsers * self.config.env_config.server_size
        return Need({**parts, "browsers": float(browsers * _SESSION_BYTES)})

    @property
    def kept_on_disk(self) -> float:
        """Bytes of the versions that are kept, and of the one that is being written."""
        assert self.training is not None
        trainer, disk = self.config.trainer_config, version_disk(self.training).parts
        versions = trainer.keep_checkpoints + 1
        whole = min(versions, versions // trainer.save_every + 1)
        return versions * disk["for policies"] + whole * disk["for the trainer"]


def planned(config: Config, size: ModelSize, machine: Machine, shares: Sequence[Share]) -> Plan:
    """Raises `ConfigurationError`: the DeepSpeed file cannot be used."""
    training = _training(config, size, shares) if _count(shares, Role.TRAINER) else None
    serving = _serving(config, size, machine) if _count(shares, Role.POLICY) else None
    return Plan(config=config, size=size, machine=machine, shares=tuple(shares), training=training, serving=serving)


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
    frozen = config.trainer_config.freeze
    return Training(
        size=size,
        num_trained=adapters if lora.active else size.num_parameters - sum(size.parts.get(part, 0) for part in frozen),
        num_served=adapters if lora.active else size.num_parameters,
        dtype_bytes=_BYTES[deepspeed.dtype],
        stage=deepspeed.stage,
        num_ranks=_count(shares, Role.TRAINER),
        tokens=samples * length,
        completion_tokens=samples * min(policy.max_new_tokens, length),
        num_patches=samples * min(patches, length * size.patches_a_token),
        checkpoints_activations=deepspeed.checkpoints_activations,
        trains_vision=config.trainer_config.trains_vision,
        num_engines=2 if traits_of(config.objective_config).critic else 1,
        has_reference=config.objective_config.needs_reference and not lora.active,
        bucket=int(zero.get("reduce_bucket_size", 500_000_000)),
        offloads_optimizer=_offloads(deepspeed, "offload_optimizer"),
        offloads_parameters=_offloads(deepspeed, "offload_param"),
    )


def _offloads(deepspeed: DeepSpeedConfig, key: str) -> bool:
    offloading: dict[str, str] = deepspeed.settings["zero_optimization"].get(key) or {}
    return offloading.get("device", "none") != "none"


def _serving(config: Config, size: ModelSize, machine: Machine) -> Serving:
    policy = config.policy_config
    dtype_bytes = size.dtype_bytes if policy.dtype == "auto" else _BYTES[policy.dtype]
    cache = str(policy.vllm_args.get("kv_cache_dtype", "auto"))
    return Serving(
        size=size,
        dtype_bytes=dtype_bytes,
        num_parts=policy.num_parts,
        memory=policy.gpu_memory_utilization * machine.gpu.memory,
        tokens_a_step=step_tokens(policy, policy.max_model_len),
        key_value_bytes=1 if cache.startswith("fp8") else dtype_bytes,
    )


def gib(num_bytes: float) -> str:
    return f"{num_bytes / (1 << 30):.1f} GiB"
