"""The trainer's side of `benchmarks.training_speed`: prints one `Run` as JSON."""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.training_samples import build_samples, demonstrations
from benchmarks.training_speed import BATCH, LEARNING_RATE, NUM_SAMPLES, WARM_UP_STEPS, Run
from schemas.algorithm_config import AlgorithmConfig
from schemas.trainer_config import TrainerConfig
from trainer.engine.deepspeed_config import read_deepspeed_config
from trainer.engine.settings import EngineSettings
from trainer.engine.training_engine import open_engine
from trainer.imitation import cloning_items

_DEEPSPEED = Path(__file__).parents[1] / "ops/config/deepspeed/ds_config_cpu_zero1.json"


def train(model: Path, *, threads: int, steps: int) -> Run:
    samples = build_samples(model, demonstrations(NUM_SAMPLES))
    algorithm = AlgorithmConfig(
        per_device_train_batch_size=BATCH,
        gradient_accumulation_steps=1,
        learning_rate=LEARNING_RATE,
        warmup_steps=0,
        weight_decay=0.01,
        max_grad_norm=1.0,
    )
    settings = EngineSettings(read_deepspeed_config(_DEEPSPEED), algorithm, TrainerConfig(torch_threads=threads))
    losses: list[float] = []
    tokens = completion_tokens = 0
    began = cpu = 0.0
    with open_engine(model, settings=settings) as engine:
        for step in range(WARM_UP_STEPS + steps):
            if step == WARM_UP_STEPS:
                began, cpu = time.perf_counter(), time.process_time()
                tokens = completion_tokens = 0
            first = step * BATCH % NUM_SAMPLES
            batch = samples[first : first + BATCH]
            losses.append(engine.train(cloning_items(batch)).loss)
            tokens += sum(len(sample.tokens) for sample in batch)
            completion_tokens += sum(sample.num_completion for sample in batch)
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    return Run(tokens, completion_tokens, seconds, cpu_seconds, losses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("threads", type=int)
    parser.add_argument("steps", type=int)
    parser.add_argument("--curve", action="store_true")
    options = parser.parse_args()
    print(json.dumps(asdict(train(options.model, threads=options.threads, steps=options.steps))))


if __name__ == "__main__":
    main()
