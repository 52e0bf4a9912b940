"""Holds the parts that every learner works with, and what it goes by."""

from dataclasses import dataclass

from trainer.augmentations import Augmentation
from trainer.episodes.episode_steps import StepStore
from trainer.ports import TrainingEngine
from trainer.readings import Readings
from trainer.truncation import Truncation
from trainer.updates import Updates


@dataclass(frozen=True, kw_only=True)
class LearningRules:
    """By value."""

    seed: int
    batch_size: int
    """Judgements of an iteration."""
    staleness_bound: int | None
    truncation: Truncation
    """Of the policies' samplers."""
    max_new_tokens: int
    """Of one answer."""


@dataclass(frozen=True, eq=False)
class Parts:
    """Live as long as the learner."""

    engine: TrainingEngine
    store: StepStore
    updates: Updates
    readings: Readings
    augmentation: Augmentation | None = None
    """Of what is imitated."""
