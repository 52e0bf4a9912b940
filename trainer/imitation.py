"""Training on given samples, step by step: what the trainer's iterations and a warm start on demonstrations share."""

from collections.abc import Iterator, Sequence

import numpy as np

from trainer.items import Item, targets_of
from trainer.objective.aggregation import token_weights
from trainer.ports import StepResult, TrainingEngine
from trainer.samples import Sample
from trainer.training_order import training_order


def imitate(engine: TrainingEngine, samples: Sequence[Sample], *, num_epochs: int, seed: int) -> Iterator[StepResult]:
    """Trains on `samples`, shuffled anew every epoch; yields after every optimizer step, so that the caller may stop.

    Example:
        for step, result in enumerate(imitate(engine, samples, num_epochs=100, seed=0)):
            if step % 20 == 19 and success(engine) > 0.4:
                break
    """
    for epoch in range(num_epochs):
        for chosen in training_order(len(samples), engine.step_size, seed=seed, iteration=0, epoch=epoch):
            yield engine.train(cloning_items([samples[index] for index in chosen]))


def cloning_items(samples: Sequence[Sample]) -> list[Item]:
    """One optimizer step's samples with targets: every completion token counts the same."""
    weights = token_weights([np.ones(sample.num_completion) for sample in samples])
    return [Item(sample, targets_of(sample, weights=share)) for sample, share in zip(samples, weights, strict=True)]
