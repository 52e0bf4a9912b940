"""Training on given samples, step by step: what the trainer's iterations and a warm start on demonstrations share."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from trainer.augmentations import Augmentation, varied
from trainer.items import Item, targets_of
from trainer.objective.aggregation import token_weights
from trainer.ports import StepResult, TrainingEngine
from trainer.samples import Sample


def imitate(
    engine: TrainingEngine,
    samples: Sequence[Sample],
    *,
    order: Iterable[np.ndarray],
    seed: int,
    vary: Augmentation | None = None,
) -> Iterator[StepResult]:
    """Trains on the samples of each optimizer step that `order` says; yields after every step, so that the caller may stop.

    With `vary`, what is trained on is made of each sample every time that it comes.

    Example:
        for step, result in enumerate(imitate(engine, samples, order=order, seed=0)):
            if step % 20 == 19 and success(engine) > 0.4:
                break
    """
    for number, chosen in enumerate(order):
        seen = [samples[index] for index in chosen]
        yield engine.train(cloning_items(varied(seen, vary, seed=(seed, number)) if vary else seen))


def untempered(samples: Sequence[Sample]) -> list[Sample]:
    """The same to be imitated by the model as it is, at temperature 1, whatever they were sampled at (WebGym).

    Imitating what came from a lower temperature makes a model surer; imitation at that same temperature would not.
    """
    return [replace(sample, temperature=1.0) for sample in samples]


def cloning_items(samples: Sequence[Sample]) -> list[Item]:
    """One optimizer step's samples with targets, to be imitated."""
    return evenly_weighted(untempered(samples))


def evenly_weighted(samples: Sequence[Sample]) -> list[Item]:
    """One optimizer step's samples with targets: every completion token counts the same."""
    weights = token_weights([np.ones(sample.num_completion) for sample in samples])
    return [Item(sample, targets_of(sample, weights=share)) for sample, share in zip(samples, weights, strict=True)]
