"""The trainer's side of `benchmarks.training_speed`: prints one `Run` as JSON."""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.training_speed import BATCH, LEARNING_RATE, NUM_SAMPLES, WARM_UP_STEPS, Run, advantage
from ops.gpu_check.drawn_pages import build_samples, demonstrations
from schemas.algorithm_config import AlgorithmConfig
from schemas.objective_config import ObjectiveConfig
from schemas.trainer_config import TrainerConfig
from trainer.engine.deepspeed_config import read_deepspeed_config
from trainer.engine.settings import EngineSettings
from trainer.engine.training_engine import open_engine
from trainer.imitation import cloning_items
from trainer.items import Item, targets_of
from trainer.objective.aggregation import token_weights
from trainer.samples import Sample

_DEEPSPEED = Path(__file__).parents[1] / "ops/config/deepspeed/ds_config_cpu_zero1.json"


CLIPPED = ObjectiveConfig(adv_estimator="grpo", loss_type="clipped", group_size=2)
MakeItems = Callable[[int, Sequence[Sample]], list[Item]]
"""What samples are trained towards; the first one's number is given."""


def policy_gradient_items(samples: Sequence[Sample], logprobs: Sequence[np.ndarray]) -> MakeItems:
    """`logprobs`: of each sample, under the policy at the beginning."""
    old = {id(sample): found for sample, found in zip(samples, logprobs, strict=True)}

    def items(first: int, batch: Sequence[Sample]) -> list[Item]:
        weights = token_weights([np.ones(sample.num_completion) for sample in batch])
        return [
            Item(
                sample,
                targets_of(
                    sample,
                    weights=share,
                    advantages=np.full(sample.num_completion, advantage(first + index)),
                    behaviour=old[id(sample)],
                ),
            )
            for index, (sample, share) in enumerate(zip(batch, weights, strict=True))
        ]

    return items


def train(model: Path, *, threads: int, steps: int, policy_gradient: bool) -> Run:
    samples = build_samples(model, demonstrations(NUM_SAMPLES))
    algorithm = AlgorithmConfig(
        per_device_train_batch_size=BATCH,
        gradient_accumulation_steps=1,
        learning_rate=LEARNING_RATE,
        warmup_steps=0,
        weight_decay=0.01,
        max_grad_norm=1.0,
    )
    settings = EngineSettings(
        read_deepspeed_config(_DEEPSPEED),
        algorithm,
        TrainerConfig(torch_threads=threads),
        CLIPPED if policy_gradient else ObjectiveConfig(),
    )
    losses: list[float] = []
    tokens = completion_tokens = 0
    began = cpu = 0.0
    with open_engine(model, settings=settings) as engine:
        make_items: MakeItems = lambda _, batch: cloning_items(batch)  # noqa: E731
        if policy_gradient:
            make_items = policy_gradient_items(samples, engine.completion_logprobs(samples))
        for step in range(WARM_UP_STEPS + steps):
            if step == WARM_UP_STEPS:
                began, cpu = time.perf_counter(), time.process_time()
                tokens = completion_tokens = 0
            first = step * BATCH % NUM_SAMPLES
            batch = samples[first : first + BATCH]
            losses.append(engine.train(make_items(first, batch)).loss)
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
    parser.add_argument("--policy-gradient", action="store_true")
    options = parser.parse_args()
    run = train(options.model, threads=options.threads, steps=options.steps, policy_gradient=options.policy_gradient)
    print(json.dumps(asdict(run)))


if __name__ == "__main__":
    main()
