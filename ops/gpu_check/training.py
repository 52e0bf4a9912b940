"""What a trainer's rank does with a model: whether it agrees with the policy, then tokens a second, MFU and memory.

    python -m ops.gpu_check.training MODEL FOLDER

It compares and trains on the answers that the policy gave before, without it on demonstrations.
"""

import gc
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ops.config.loading import load_config
from ops.gpu_check.drawn_pages import NUM_PAGES, PAGE, build_samples, demonstrations, sampled
from ops.gpu_check.kernels import gpu_seconds
from ops.gpu_check.results import Agreement, Answers, Trained, Training, read, write
from ops.launch.node_file import Share
from ops.planning.gpus import GIB, Gpu
from ops.planning.memory import rank_gpu
from ops.planning.model_size import model_size
from ops.planning.plan import Machine, planned
from ops.roles.deepspeed_trainer import engine_settings
from schemas.config import Config
from schemas.messages import Role
from trainer.engine.settings import EngineSettings
from trainer.engine.training_engine import open_engine
from trainer.imitation import cloning_items
from trainer.mismatch import measured_mismatch
from trainer.samples import Sample
from trainer.training_metrics import TrainingMetrics

_LENGTH = 2048
"""More than a drawn page's prompt and answer have."""
_WARM_UP = 2
"""Optimizer steps that are not measured."""
_CHECKPOINTING = "activation_checkpointing"


@dataclass(frozen=True)
class Layout:
    """How samples come to the model."""

    name: str
    at_once: tuple[int, ...]
    """In a micro-batch; the first number of samples that fits."""
    keeps_activations: bool = False
    num_steps: int = 5
    """That are measured."""

    def settings(self, at_once: int) -> EngineSettings:
        found = engine_settings(config_of(at_once))
        kept = {key: value for key, value in found.deepspeed.settings.items() if key != _CHECKPOINTING}
        return replace(found, deepspeed=replace(found.deepspeed, settings=kept)) if self.keeps_activations else found


@dataclass(frozen=True)
class Measured:
    means: dict[str, float]
    """What `TrainingMetrics` says."""
    memory_gib: float | None
    gpu_s: dict[str, float]


LAYOUTS = (
    Layout("packed", (16, 8, 4, 2, 1)),
    Layout("packed, activations kept", (8, 4, 2, 1), keeps_activations=True),
    Layout("one by one", (1,), num_steps=1),
)


def config_of(samples_at_once: int) -> Config:
    gpu = torch.cuda.is_available()
    return load_config(
        "update_online",
        [
            f"algorithm_config.deepspeed_config_filename=ds_config_{'h100' if gpu else 'cpu'}_zero1.json",
            f"algorithm_config.per_device_train_batch_size={samples_at_once}",
            "algorithm_config.gradient_accumulation_steps=1",
            f"algorithm_config.cutoff_len={_LENGTH}",
            "algorithm_config.warmup_steps=0",
            f"policy_config.max_new_tokens={_LENGTH // 8}",
        ],
    )


def check(model: Path, folder: Path) -> Trained:
    shown = demonstrations(NUM_PAGES if torch.cuda.is_available() else NUM_PAGES // 4, width=PAGE[0], height=PAGE[1])
    answers = read(folder, "answers", Answers)
    samples = sampled(model, shown, answers.generations[: len(shown)]) if answers else build_samples(model, shown)
    agreement = _agreement(model, samples) if answers else None
    found = (_first_that_fits(model, samples, layout) for layout in LAYOUTS)
    return Trained(tuple([run for run in found if run is not None]), agreement)


def _agreement(model: Path, samples: Sequence[Sample]) -> Agreement:
    with open_engine(model, settings=engine_settings(config_of(LAYOUTS[0].at_once[0]))) as engine:
        found = measured_mismatch(samples, engine.completion_logprobs(samples))
        return Agreement(str(engine.model.dtype), found.mean, found.k3, found.far_share)


def _first_that_fits(model: Path, samples: Sequence[Sample], layout: Layout) -> Training | None:
    """None: the GPU is too small for one sample."""
    for at_once in layout.at_once:
        if (found := measured(model, samples, layout, at_once)) is not None:
            return _told(model, samples, layout, at_once, found)
        print(f"{layout.name}, {at_once} at once: more than the GPU's memory", flush=True)
    return None


def measured(model: Path, samples: Sequence[Sample], layout: Layout, at_once: int) -> Measured | None:
    """Some optimizer steps; None: a micro-batch does not fit into the GPU's memory."""
    # Of the engine before nothing may be left: two need not fit beside each other.
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    metrics = TrainingMetrics()
    with open_engine(model, settings=layout.settings(at_once)) as engine:
        for step in range(_WARM_UP + layout.num_steps):
            try:
                result = engine.train(cloning_items(samples))
            except torch.OutOfMemoryError:
                return None
            if step >= _WARM_UP:
                metrics.add(result, len(samples))
        memory = torch.cuda.max_memory_reserved() / GIB if torch.cuda.is_available() else None
        profiled = torch.cuda.is_available() and layout.num_steps > 1
        gpu_s = gpu_seconds(lambda: engine.train(cloning_items(samples))) if profiled else {}
        return Measured(metrics.means(), memory, gpu_s)


def _told(model: Path, samples: Sequence[Sample], layout: Layout, at_once: int, found: Measured) -> Training:
    trainer = planned(config_of(at_once), model_size(model), Machine(gpu=Gpu("", 0.0)), [Share(role=Role.TRAINER)]).training
    assert trainer is not None
    length = max(len(sample.tokens) for sample in samples)
    needed = rank_gpu(
        replace(
            trainer,
            tokens=at_once * length,
            completion_tokens=at_once * max(sample.num_completion for sample in samples),
            num_patches=at_once * len(samples[0].screenshots[0].raw),
            checkpoints_activations=not layout.keeps_activations,
        )
    )
    return Training(
        device=torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        layout=layout.name,
        samples_at_once=at_once,
        tokens_a_step=sum(len(sample.tokens) for sample in samples),
        step_s=found.means["step_s"],
        tokens_per_s=found.means["tokens_per_s"],
        tflops_per_s=found.means["tflops_per_s"],
        mfu=found.means.get("mfu"),
        memory_gib=found.memory_gib,
        planned_gib=needed.total / GIB,
        gpu_s=found.gpu_s,
    )


def main() -> None:
    model, folder = Path(sys.argv[1]), Path(sys.argv[2])
    write(folder, "training", check(model, folder))


if __name__ == "__main__":
    main()
