"""Remembers how a warm start went, from what its heartbeats say: the loss, and how well it does what was demonstrated."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ops.monitor.view import Curve, CurvePoint
from ops.quickstart.recipe import WarmStart

_BARS = "▁▂▃▄▅▆▇█"
_MOST_BARS = 24


@dataclass
class WarmCourse:
    losses: dict[int, float] = field(default_factory=dict)
    """By optimizer steps."""
    successes: dict[int, float] = field(default_factory=dict)
    """Shares of the kept-out demonstrations, by optimizer steps."""

    def note(self, metrics: Mapping[str, float]) -> None:
        updates = int(metrics.get("updates", 0))
        if "loss" in metrics:
            self.losses[updates] = metrics["loss"]
        if "success" in metrics and metrics["success"] not in list(self.successes.values())[-1:]:
            self.successes[updates] = metrics["success"]

    def curve(self, settings: WarmStart) -> Curve:
        where = f", {settings.num_worst} worst pages" if settings.num_worst else ""
        points = tuple(CurvePoint(num_episodes=updates, success=share) for updates, share in self.successes.items())
        return Curve(
            train=points,
            bar=settings.target_success,
            bar_label="enough to learn from reward" if points else "",
            num_expected=max(self.losses, default=0),
            title=f"demonstrations kept out that it would play as shown{where}",
            unit="updates",
        )

    @property
    def loss_bars(self) -> str:
        """The loss at a glance, oldest first; empty before there are two."""
        losses = list(self.losses.values())
        if len(losses) < 2:
            return ""
        step = -(-len(losses) // _MOST_BARS)
        shown = [*losses[:-1:step], losses[-1]]
        least, most = min(shown), max(shown)
        return "".join(_BARS[round((loss - least) / ((most - least) or 1.0) * (len(_BARS) - 1))] for loss in shown)
