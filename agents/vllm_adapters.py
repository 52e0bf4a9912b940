"""LoRA adapters in a vLLM engine: the newest answers new requests, and those in flight finish with the one they began with.

Invariant: an answer comes from one adapter from its first token to its last, so it belongs to one policy version. Adapters
take the version as their number; vLLM keys its caches of prefixes and screenshots by it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from schemas.errors import ConfigurationError
from schemas.ids import PolicyVersion
from schemas.lora_config import LoraConfig
from schemas.messages import VersionSpan

if TYPE_CHECKING:
    from vllm.lora.request import LoRARequest
    from vllm.outputs import RequestOutput
    from vllm.v1.engine.llm_engine import LLMEngine

_CONFIG = "adapter_config.json"
_NUM_LOADED = 2
"""The newest, and the one before it for answers in flight."""
_NUM_EMPTY_ON_CPU = 1
"""vLLM 0.32's operations for CPUs take slot -1, the last one, for requests without an adapter: it has to stay empty."""


def adapter_arguments(lora: LoraConfig, *, on_cpu: bool) -> dict[str, Any]:
    """What an engine that will get adapters is built with."""
    if not lora.active:
        return {}
    from vllm.config.lora import MaxLoRARanks

    num_slots = _NUM_LOADED + (_NUM_EMPTY_ON_CPU if on_cpu else 0)
    return {
        "enable_lora": True,
        "max_lora_rank": min(rank for rank in get_args(MaxLoRARanks) if rank >= lora.rank),
        "max_loras": num_slots,
        "max_cpu_loras": num_slots,
        "enable_tower_connector_lora": lora.adapts_screenshots,
    }


def require_adapters(folder: Path, lora: LoraConfig) -> None:
    """Raises `ConfigurationError` unless a checkpoint holds what the engine was built for: adapters, or a whole model."""
    held = (folder / _CONFIG).is_file()
    if held and not lora.active:
        raise ConfigurationError(f"{folder} holds adapters: set trainer_config.lora.rank here as for the trainer")
    if lora.active and not held:
        raise ConfigurationError(f"{folder} holds a whole model and trainer_config.lora.rank is {lora.rank}: write 0")


@dataclass
class VllmAdapters:
    """The adapters of one engine; used from the engine's thread."""

    llm: "LLMEngine"
    _loaded: "list[LoRARequest]" = field(default_factory=list)
    """Oldest first."""

    @property
    def newest(self) -> "LoRARequest | None":
        """What new requests are answered with; None: the base model alone."""
        return self._loaded[-1] if self._loaded else None

    def load(self, folder: Path, version: PolicyVersion, step: "Callable[[], list[RequestOutput]]") -> "list[RequestOutput]":
        """Makes an adapter the newest; returns what finished meanwhile.

        Requests of the newest so far go on beside it. Those of the one before, if there are any left, are finished first
        by steps of the engine: at most as many as an answer has tokens.
        """
        from vllm.lora.request import LoRARequest

        finished: list[RequestOutput] = []
        while len(self._loaded) >= _NUM_LOADED:
            oldest = self._loaded[0]
            while self._in_flight(oldest):
                finished.extend(step())
            self.llm.remove_lora(oldest.lora_int_id)
            self._loaded.pop(0)
        adapter = LoRARequest(lora_name=f"v{version}", lora_int_id=version, lora_path=str(folder))
        self.llm.add_lora(adapter)
        self._loaded.append(adapter)
        return finished

    def _in_flight(self, adapter: "LoRARequest") -> bool:
        states = self.llm.output_processor.request_states.values()
        return any(state.lora_request == adapter for state in states)


def adapter_spans(output: "RequestOutput") -> tuple[VersionSpan, ...] | None:
    """Which version sampled an answer's tokens: its adapter's; None when it had none."""
    if output.lora_request is None:
        return None
    version = PolicyVersion(output.lora_request.lora_int_id)
    return (VersionSpan(start=0, end=len(output.outputs[0].token_ids), version=version),)
