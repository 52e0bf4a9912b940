"""Adds up what one iteration measures while it runs: losses, and seconds by phase."""

import time
from dataclasses import dataclass, field

from trainer.ports import Effort, StepResult


@dataclass
class TrainingMetrics:
    """Sums over the optimizer steps of one iteration."""

    losses: float = 0.0
    grad_norms: float = 0.0
    learning_rate: float = 0.0
    num_steps: int = 0
    num_tokens: int = 0
    num_samples: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    """The objective's, times the tokens that they are means of."""
    efforts: list[Effort] = field(default_factory=list)

    def add(self, result: StepResult, num_samples: int) -> None:
        self.losses += result.loss
        self.grad_norms += result.grad_norm
        self.learning_rate = result.learning_rate
        self.num_steps += 1
        self.num_tokens += result.num_tokens
        self.num_samples += num_samples
        self.efforts.append(result.effort)
        for name, value in result.metrics.items():
            self.metrics[name] = self.metrics.get(name, 0.0) + value * result.num_tokens

    def means(self) -> dict[str, float]:
        """Means over tokens and steps; no loss where nothing was trained on."""
        if not self.num_steps:
            return {"samples": 0.0, "tokens": 0.0}
        means = {name: total / max(1, self.num_tokens) for name, total in self.metrics.items()}
        if means.get("ratio_squared"):
            # Kish's effective sample size, as a share of the tokens.
            means["effective_samples"] = means["ratio"] ** 2 / means["ratio_squared"]
        return {
            "loss": self.losses / self.num_steps,
            "grad_norm": self.grad_norms / self.num_steps,
            "learning_rate": self.learning_rate,
            "samples": float(self.num_samples),
            "tokens": float(self.num_tokens),
            "updates": float(self.num_steps),
            **self._throughput(),
        } | means

    def _throughput(self) -> dict[str, float]:
        """While optimizer steps were made; the share of the devices' peak where that is known."""
        seconds = sum(effort.seconds for effort in self.efforts)
        if not seconds:
            return {}
        flops = sum(effort.flops for effort in self.efforts)
        peak = self.efforts[-1].peak_flops_per_s
        return {
            "step_s": seconds / self.num_steps,
            "tokens_per_s": sum(effort.tokens for effort in self.efforts) / seconds,
            "completion_tokens_per_s": sum(effort.completion_tokens for effort in self.efforts) / seconds,
            "samples_per_s": self.num_samples / seconds,
            "tflops_per_s": flops / seconds / 1e12,
        } | ({"mfu": flops / seconds / peak} if peak else {})


class PhaseClock:
    """Seconds of each phase, as `<phase>_s`."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._last = time.monotonic()

    def end(self, phase: str) -> None:
        now = time.monotonic()
        self.phases[f"{phase}_s"] = self.phases.get(f"{phase}_s", 0.0) + now - self._last
        self._last = now
