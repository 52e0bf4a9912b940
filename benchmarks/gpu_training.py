"""What one GPU makes of training a Qwen3-VL from a local folder: tokens per second, model FLOPs utilisation, peak memory.

    python -m benchmarks.gpu_training --model /models/Qwen3-VL-2B-Instruct [--width 1280 --height 768]

Full fine-tuning by filtered cloning on drawn pages with real DeepSpeed, bf16 and gradient checkpointing, through the trainer's
own engine. Without `--model` it trains the tiny model. Without a GPU it says so: then the metrics are a CPU's, and no target
applies.
"""

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.report import RESULTS, Report
from benchmarks.training_samples import build_model, build_samples, demonstrations
from schemas.algorithm_config import AlgorithmConfig
from schemas.trainer_config import TrainerConfig
from trainer.engine.deepspeed_config import read_deepspeed_config
from trainer.engine.settings import EngineSettings
from trainer.engine.training_engine import open_engine
from trainer.imitation import cloning_items
from trainer.ports import StepResult
from trainer.training_metrics import TrainingMetrics

_CONFIGS = Path(__file__).parents[1] / "ops/config/deepspeed"
_GIB = 2**30
TARGET_MFU = 0.4


@dataclass(frozen=True)
class Row:
    device: str
    model: str
    tokens_a_step: int
    step_s: float
    tokens_per_s: float
    completion_tokens_per_s: float
    tflops_per_s: float
    mfu: float | None
    """None where the device's peak is not known."""
    peak_memory_gib: float | None
    first_loss: float
    last_loss: float


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is trained on."""

    model: Path
    num_samples: int = 16
    """Of one optimizer step."""
    max_tokens: int = 16_384
    """Of one micro-batch."""
    width: int = 1280
    height: int = 768
    steps: int = 8
    warm_up_steps: int = 2
    deepspeed: str = "ds_config_h100_zero1.json"
    peak_tflops: float = 0.0


def measure(job: Job) -> Row:
    """Makes a few optimizer steps on the device at hand; the warm-up's do not count."""
    on_gpu = torch.cuda.is_available()
    samples = build_samples(job.model, demonstrations(job.num_samples, width=job.width, height=job.height))
    algorithm = AlgorithmConfig(
        per_device_train_batch_size=job.num_samples,
        max_tokens_per_micro_batch=job.max_tokens,
        gradient_accumulation_steps=1,
        learning_rate=1e-5,
        warmup_steps=0,
    )
    settings = EngineSettings(
        read_deepspeed_config(_CONFIGS / job.deepspeed), algorithm, TrainerConfig(peak_tflops=job.peak_tflops)
    )
    results: list[StepResult] = []
    metrics = TrainingMetrics()
    with open_engine(job.model, settings=settings) as engine:
        for step in range(job.warm_up_steps + job.steps):
            results.append(engine.train(cloning_items(samples)))
            if step >= job.warm_up_steps:
                metrics.add(results[-1], len(samples))
    shown = metrics.means()
    return Row(
        device=torch.cuda.get_device_name() if on_gpu else "CPU",
        model=job.model.name,
        tokens_a_step=sum(len(sample.tokens) for sample in samples),
        step_s=shown["step_s"],
        tokens_per_s=shown["tokens_per_s"],
        completion_tokens_per_s=shown["completion_tokens_per_s"],
        tflops_per_s=shown["tflops_per_s"],
        mfu=shown.get("mfu"),
        peak_memory_gib=torch.cuda.max_memory_allocated() / _GIB if on_gpu else None,
        first_loss=results[0].loss,
        last_loss=results[-1].loss,
    )


def notes(row: Row) -> Sequence[str]:
    if row.device == "CPU":
        return ("no GPU here: these are a processor's metrics, and the target of 40 % MFU was not tried",)
    if row.mfu is None:
        return (f"the peak of {row.device} is not known: give it by --peak-tflops",)
    return (f"target: {TARGET_MFU:.0%} MFU with a 2B to 8B Qwen3-VL; {'met' if row.mfu >= TARGET_MFU else 'missed'}",)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--max-tokens", type=int, default=16_384)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=768)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--deepspeed", help="a file of ops/config/deepspeed")
    parser.add_argument("--peak-tflops", type=float, default=0.0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    default = "ds_config_h100_zero1.json" if torch.cuda.is_available() else "ds_config_cpu_zero1.json"
    with ExitStack() as stack:
        model = options.model
        if model is None:
            model = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "tiny"
            build_model(model)
        row = measure(
            Job(
                model=model,
                num_samples=options.samples,
                max_tokens=options.max_tokens,
                width=options.width,
                height=options.height,
                steps=options.steps,
                deepspeed=options.deepspeed or default,
                peak_tflops=options.peak_tflops,
            )
        )
    Report(name="gpu_training", title="Full fine-tuning on one device", rows=[row], notes=notes(row)).publish(options.out)


if __name__ == "__main__":
    main()
