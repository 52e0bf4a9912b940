"""Holds what a training engine is opened with, the same on every rank."""

from dataclasses import dataclass

from schemas.algorithm_config import AlgorithmConfig
from schemas.ids import RunName
from schemas.objective_config import ObjectiveConfig
from schemas.trainer_config import TrainerConfig
from trainer.engine.deepspeed_config import DeepSpeedConfig


@dataclass(frozen=True)
class EngineSettings:
    deepspeed: DeepSpeedConfig
    algorithm: AlgorithmConfig
    trainer: TrainerConfig
    objective: ObjectiveConfig = ObjectiveConfig()
    run: RunName = RunName("millrace")
