"""What a training engine is opened with, the same on every rank."""

from dataclasses import dataclass

from schemas.training_config import AlgorithmConfig, ObjectiveConfig, TrainerConfig
from trainer.engine.deepspeed_config import DeepSpeedConfig


@dataclass(frozen=True)
class EngineSettings:
    deepspeed: DeepSpeedConfig
    algorithm: AlgorithmConfig
    trainer: TrainerConfig
    objective: ObjectiveConfig = ObjectiveConfig()
