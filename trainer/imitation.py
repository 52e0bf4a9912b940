"""Training on given samples, step by step: what the trainer's iterations and a warm start on demonstrations share."""

from collections.abc import Iterator, Sequence

from trainer.engine import TrainEngine
from trainer.ports import StepResult
from trainer.replay import training_order
from trainer.samples import Sample


def imitate(engine: TrainEngine, samples: Sequence[Sample], *, num_epochs: int, seed: int) -> Iterator[StepResult]:
    """Trains on `samples`, shuffled anew every epoch; yields after every optimizer step, so that the caller may stop.

    Example:
        for step, result in enumerate(imitate(engine, samples, num_epochs=100, seed=0)):
            if step % 20 == 19 and success(engine) > 0.4:
                break
    """
    for epoch in range(num_epochs):
        for chosen in training_order(len(samples), engine.step_size, seed=seed, iteration=0, epoch=epoch):
            yield engine.train([samples[index] for index in chosen])
