"""What the stages of a run make of its learning rate. Pure."""

from dataclasses import dataclass

from schemas.feeder_config import FeederConfig


@dataclass(frozen=True, slots=True)
class LearningRates:
    height: float
    """`algorithm_config.learning_rate`."""
    feeder: FeederConfig

    def factor(self, version: int) -> float:
        """Of the height, in the iteration that begins from `version`."""
        rate = self.feeder.learning_rate(version)
        return 1.0 if rate is None else rate / self.height
