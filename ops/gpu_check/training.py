"""What a trainer's rank does with a model: whether it agrees with the policy, then tokens a second, MFU and memory.

    python -m ops.gpu_check.training MODEL FOLDER

It compares and trains on the answers that the policy gave before, without it on demonstrations.
"""

import gc
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from ops.config.loading import load_config
from ops.gpu_check.drawn_pages import PAGE, build_samples, demonstrations, sampled
from ops.gpu_check.results import Agreement, Answers, Trained, Training, read, write
from ops.launch.node_file import Share
from ops.planning.gpus import GIB, Gpu
from ops.planning.memory import rank_gpu
from ops.planning.model_size import model_size
from ops.planning.plan import Machine, planned
from ops.roles.deepspeed_trainer import engine_settings
from schemas.config import Config
from schemas.messages import Role
from trainer.engine.training_engine import open_engine
from trainer.imitation import cloning_items
from trainer.mismatch import measured_mismatch
from trainer.samples import Sample
from trainer.training_metrics import TrainingMetrics

_LENGTH = 2048
"""More than a drawn page's prompt and answer have."""
_NUM_SAMPLES = 16
"""Of one optimizer step."""
_STEPS, _WARM_UP = 8, 2
_LAYOUTS = {"packed": _NUM_SAMPLES, "one by one": 1}


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
    shown = demonstrations(_NUM_SAMPLES, width=PAGE[0], height=PAGE[1])
    answers = read(folder, "answers", Answers)
    samples = sampled(model, shown, answers.generations[: len(shown)]) if answers else build_samples(model, shown)
    agreement = _agreement(model, samples) if answers else None
    return Trained(tuple([_trained(model, samples, layout) for layout in _LAYOUTS]), agreement)


def _agreement(model: Path, samples: Sequence[Sample]) -> Agreement:
    with open_engine(model, settings=engine_settings(config_of(_NUM_SAMPLES))) as engine:
        found = measured_mismatch(samples, engine.completion_logprobs(samples))
        return Agreement(str(engine.model.dtype), found.mean, found.k3, found.far_share)


def _trained(model: Path, samples: Sequence[Sample], layout: str) -> Training:
    # Of the engine before nothing may be left: two need not fit beside each other.
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    config, metrics = config_of(_LAYOUTS[layout]), TrainingMetrics()
    with open_engine(model, settings=engine_settings(config)) as engine:
        for step in range(_WARM_UP + _STEPS):
            result = engine.train(cloning_items(samples))
            if step >= _WARM_UP:
                metrics.add(result, len(samples))
    return _told(layout, samples, metrics.means(), config, model)


def _told(layout: str, samples: Sequence[Sample], means: dict[str, float], config: Config, model: Path) -> Training:
    on_gpu = torch.cuda.is_available()
    trainer = planned(config, model_size(model), Machine(gpu=Gpu("", 0.0)), [Share(role=Role.TRAINER)]).training
    assert trainer is not None
    length = max(len(sample.tokens) for sample in samples)
    at_once = _LAYOUTS[layout]
    needed = rank_gpu(
        replace(
            trainer,
            tokens=at_once * length,
            completion_tokens=at_once * max(sample.num_completion for sample in samples),
            num_patches=at_once * len(samples[0].screenshots[0].raw),
        )
    )
    return Training(
        device=torch.cuda.get_device_name() if on_gpu else "CPU",
        layout=layout,
        tokens_a_step=sum(len(sample.tokens) for sample in samples),
        step_s=means["step_s"],
        tokens_per_s=means["tokens_per_s"],
        tflops_per_s=means["tflops_per_s"],
        mfu=means.get("mfu"),
        memory_gib=torch.cuda.max_memory_reserved() / GIB if on_gpu else None,
        planned_gib=needed.total / GIB,
    )


def main() -> None:
    model, folder = Path(sys.argv[1]), Path(sys.argv[2])
    write(folder, "training", check(model, folder))


if __name__ == "__main__":
    main()
