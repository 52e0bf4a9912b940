"""When a warm start ends: some optimizer steps behind its target, at a rate that falls, or at the most that it may make."""

from ops.quickstart.recipe import WarmStart


class Cooling:
    def __init__(self, settings: WarmStart) -> None:
        self._settings = settings
        self.begun = False
        """The target was reached."""
        self.ends_at = settings.max_updates
        """Optimizer steps."""

    def look(self, num_updates: int, success: float) -> None:
        """What a look has found; behind the target it changes nothing."""
        if not self.begun and success >= self._settings.target_success:
            self.begun = True
            self.ends_at = num_updates + self._settings.cooling_updates

    def rate_factor(self, num_updates: int) -> float:
        """Of the step behind so many: 1 until the target, then evenly down towards 0, which the last one is still above."""
        return (self.ends_at - num_updates) / (self._settings.cooling_updates + 1) if self.begun else 1.0
