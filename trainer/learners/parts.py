"""Holds the parts that every learner works with."""

from dataclasses import dataclass

from trainer.episodes.episode_steps import StepStore
from trainer.ports import TrainingEngine
from trainer.readings import Readings
from trainer.updates import Updates


@dataclass(frozen=True, eq=False)
class Parts:
    """Live as long as the learner."""

    engine: TrainingEngine
    store: StepStore
    updates: Updates
    readings: Readings
