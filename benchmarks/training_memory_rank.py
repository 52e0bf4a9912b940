"""One rank of `benchmarks.training_memory`: reads a model, makes a step, writes a version, and goes on from that."""

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import safetensors.torch
import torch

from benchmarks.training_memory import Measured
from schemas.algorithm_config import AlgorithmConfig
from schemas.trainer_config import TrainerConfig
from trainer.engine.commands import OpenCommand, TrainCommand, WriteCommand
from trainer.engine.deepspeed_config import DeepSpeedConfig, read_deepspeed_config
from trainer.engine.models import Models
from trainer.engine.ranks import Ranks
from trainer.engine.settings import EngineSettings
from trainer.imitation import cloning_items
from trainer.model import loading
from trainer.model.layers import trained_layers, trained_parameters, without_values
from trainer.versions.checkpoints import model_files

_FILE = Path(__file__).parents[1] / "ops/config/deepspeed/ds_config_cpu_zero3.json"
_ALGORITHM = AlgorithmConfig(per_device_train_batch_size=1, gradient_accumulation_steps=1)
_RATE = 1e-6
_LOOK_S = 0.01


@dataclass(frozen=True)
class _Phase:
    name: str
    peak_bytes: int
    seconds: float
    written: Path | None


class Memory:
    """This process's, phase by phase."""

    def __init__(self) -> None:
        self.model: torch.nn.Module | None = None
        """Whose parameters are counted."""
        self._phases: list[_Phase] = []

    @contextmanager
    def phase(self, name: str, written: Path | None = None) -> Iterator[None]:
        """`written`: the folder of the files that count."""
        ended, seen, began = threading.Event(), [0], time.monotonic()

        def look() -> None:
            while not ended.wait(_LOOK_S):
                seen.append(_anonymous_bytes())

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        self._phases.append(_Phase(name, max(seen), time.monotonic() - began, written))

    def measured(self) -> list[Measured]:
        assert self.model is not None
        layers = [[without_values(each) for _, each in layer] for layer in trained_layers(self.model)]
        sizes = [sum(each.numel() for each in layer) for layer in layers]
        return [
            Measured(
                phase.name,
                phase.peak_bytes,
                phase.seconds,
                sum(sizes),
                max(sizes) * layers[0][0].itemsize,
                sum(file.stat().st_size for file in phase.written.rglob("*.safetensors")) if phase.written is not None else 0,
            )
            for phase in self._phases
        ]


def _anonymous_bytes() -> int:
    """Files that are mapped may leave memory whenever it is needed."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssAnon", "RssShmem")))


def millrace(model: Path, version: Path, deepspeed: DeepSpeedConfig, memory: Memory) -> None:
    ranks = Ranks()
    models = _stepped(model, deepspeed, memory, ranks)
    if ranks.rank == 0:
        (version / "trainer").mkdir(parents=True)
        for file in model_files(model):
            shutil.copyfile(file, version / file.name)
    ranks.sum(0)
    with memory.phase("write a version", version):
        models.write(WriteCommand(str(version), whole=True))
        ranks.sum(0)


def _stepped(model: Path, deepspeed: DeepSpeedConfig, memory: Memory, ranks: Ranks) -> Models:
    """Read, and trained by one step."""
    with memory.phase("read the model"):
        models = Models(OpenCommand(str(model), "", str(model)), ranks=ranks, settings=_settings(deepspeed))
    memory.model = models.module
    with memory.phase("make a step"):
        models.train(TrainCommand([cloning_items([models.idle.sample])], _RATE))
    return models


def resume(model: Path, version: Path, deepspeed: DeepSpeedConfig, memory: Memory) -> None:
    command = OpenCommand(str(version), str(version), str(model))
    with memory.phase("go on from it"):
        models = Models(command, ranks=Ranks(), settings=_settings(deepspeed))
    memory.model = models.module


@contextmanager
def _whole(deepspeed: DeepSpeedConfig) -> Iterator[None]:
    yield


def usual(model: Path, version: Path, deepspeed: DeepSpeedConfig, memory: Memory) -> None:
    ranks = Ranks()
    # DeepSpeed divides what every rank has read.
    loading._divided = _whole
    models = _stepped(model, deepspeed, memory, ranks)
    with memory.phase("write a version", version):
        _gather(models.module, version, writes=ranks.rank == 0)
        ranks.sum(0)


def _gather(model: torch.nn.Module, version: Path, *, writes: bool) -> None:
    """All of the state on rank 0, then into files."""
    from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state

    state: dict[str, torch.Tensor] = {}
    for name, parameter in trained_parameters(model):
        master = safe_get_full_fp32_param(parameter)
        found = {f"weight.{name}": master.to(parameter.dtype, copy=True)}
        found |= {f"{key}.{name}": safe_get_full_optimizer_state(parameter, key).clone() for key in ("exp_avg", "exp_avg_sq")}
        if parameter.dtype != torch.float32:
            found[f"master.{name}"] = master.clone()
        if writes:
            state |= found
    if writes:
        version.mkdir()
        safetensors.torch.save_file(state, version / "state.safetensors")


def _settings(deepspeed: DeepSpeedConfig) -> EngineSettings:
    return EngineSettings(deepspeed, _ALGORITHM, TrainerConfig(torch_threads=1))


def main() -> int:
    way, dtype, model, work = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
    deepspeed = read_deepspeed_config(_FILE)
    deepspeed = replace(deepspeed, settings={**deepspeed.settings, "bf16": {"enabled": dtype == "bfloat16"}})
    memory = Memory()
    {"millrace": millrace, "resume": resume, "usual": usual}[way](model, work / "version", deepspeed, memory)
    said = [asdict(each) for each in memory.measured()]
    (work / f"{way}-rank{os.environ['RANK']}.json").write_text(json.dumps(said), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
