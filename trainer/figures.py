"""What one iteration adds up while it runs: losses, and seconds by phase."""

from dataclasses import dataclass

from trainer.ports import StepResult


@dataclass
class TrainingFigures:
    """Sums over the optimizer steps of one iteration."""

    losses: float = 0.0
    grad_norms: float = 0.0
    learning_rate: float = 0.0
    num_steps: int = 0
    num_tokens: int = 0
    num_samples: int = 0

    def add(self, result: StepResult, num_samples: int) -> None:
        self.losses += result.loss * result.num_tokens
        self.grad_norms += result.grad_norm
        self.learning_rate = result.learning_rate
        self.num_steps += 1
        self.num_tokens += result.num_tokens
        self.num_samples += num_samples

    def metrics(self) -> dict[str, float]:
        """Means over tokens and steps; no loss where nothing was trained on."""
        if not self.num_steps:
            return {"samples": 0.0, "tokens": 0.0}
        return {
            "loss": self.losses / self.num_tokens,
            "grad_norm": self.grad_norms / self.num_steps,
            "learning_rate": self.learning_rate,
            "samples": float(self.num_samples),
            "tokens": float(self.num_tokens),
            "updates": float(self.num_steps),
        }


class PhaseClock:
    """Seconds of each phase, as `<phase>_s`."""

    def __init__(self, now: float) -> None:
        self.phases: dict[str, float] = {}
        self._last = now

    def end(self, phase: str, now: float) -> None:
        self.phases[f"{phase}_s"] = now - self._last
        self._last = now
