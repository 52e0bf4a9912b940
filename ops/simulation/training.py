"""Training without a model: the real loop, intake, replay, checkpoints and resumption, around an engine that only counts."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from schemas.errors import CheckpointCorrupt
from schemas.messages import RecordRef, StepRequest
from schemas.simulation_config import SimulationConfig
from trainer.items import Item
from trainer.ports import StepResult
from trainer.samples import LeftOut, Patches, Sample, token_versions
from trainer.truncation import Truncation

_STEP_SIZE = 64
_WEIGHTS, _OPTIMIZER = "weights.json", "trainer/optimizer.json"


class Counters(msgspec.Struct, frozen=True):
    """All that is learnt: how often, and on how many tokens."""

    num_updates: int = 0
    num_tokens: int = 0
    whole: bool = True

    def write(self, folder: Path) -> None:
        for name in (_WEIGHTS, _OPTIMIZER)[: 1 + self.whole]:
            (folder / name).write_bytes(msgspec.json.encode(self))


def read_counters(folder: Path) -> Counters:
    """Raises `CheckpointCorrupt` when a checkpoint's folder holds none."""
    try:
        return msgspec.json.decode((folder / _OPTIMIZER).read_bytes(), type=Counters)
    except (OSError, msgspec.DecodeError) as error:
        raise CheckpointCorrupt(f"{folder / _OPTIMIZER} cannot be read: {error}") from error


@dataclass
class SimulatedTrainEngine:
    """Agrees with the sampler about every log-probability."""

    config: SimulationConfig
    counters: Counters = Counters()
    step_size: int = _STEP_SIZE
    rate_factor: float = 1.0

    @property
    def num_updates(self) -> int:
        return self.counters.num_updates

    def train(self, items: Sequence[Item]) -> StepResult:
        time.sleep(self.config.train_latency_ms / 1000.0)
        num_tokens = sum(item.sample.num_completion for item in items)
        self.counters = Counters(self.counters.num_updates + 1, self.counters.num_tokens + num_tokens)
        return StepResult(loss=1.0 / self.counters.num_updates, grad_norm=1.0, learning_rate=0.0, num_tokens=num_tokens)

    def completion_logprobs(self, samples: Sequence[Sample], truncation: Truncation | None = None) -> list[np.ndarray]:
        return [sample.logprobs for sample in samples]

    def reference_logprobs(self, samples: Sequence[Sample], truncation: Truncation | None = None) -> list[np.ndarray]:
        return [sample.logprobs for sample in samples]

    def train_critic(self, items: Sequence[Item]) -> StepResult:
        num_tokens = sum(item.sample.num_completion for item in items)
        return StepResult(loss=0.0, grad_norm=0.0, learning_rate=0.0, num_tokens=num_tokens)

    def values(self, samples: Sequence[Sample]) -> list[np.ndarray]:
        return [np.zeros(sample.num_completion, dtype=np.float32) for sample in samples]

    def fresh_adapters(self) -> Counters:
        return Counters()

    def files(self, *, whole: bool = True) -> Counters:
        return msgspec.structs.replace(self.counters, whole=whole)


class SimulatedBuilder:
    """Samples of the tokens as they are; of a screenshot, its first bytes."""

    def refusal(self, step: StepRequest) -> LeftOut | None:
        return None if step.completion_tokens else LeftOut.UNUSABLE

    def patches(self, encoded: Sequence[bytes]) -> list[Patches]:
        return [Patches(np.frombuffer(data[:16], dtype=np.uint8)[None], (1, 1, 1)) for data in encoded]

    def build(self, ref: RecordRef, step: StepRequest, screenshots: Sequence[Patches]) -> Sample:
        tokens = np.array((*step.prompt_tokens, *step.completion_tokens), dtype=np.int32)
        return Sample(
            ref=ref,
            tokens=tokens,
            num_prompt=len(step.prompt_tokens),
            positions=np.zeros((3, len(tokens)), dtype=np.int32),
            logprobs=np.array(step.logprobs, dtype=np.float32),
            temperature=step.temperature,
            screenshots=tuple(screenshots),
            versions=token_versions(step),
        )
