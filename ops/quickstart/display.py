"""Builds the display of a quickstart: its phases, roles, progress, curve and metrics."""

import time

from ops.monitor.role_rows import role_rows
from ops.monitor.run_watch import RunWatch
from ops.monitor.view import Curve, Metrics, Progress, RoleRow, View
from ops.processes.local_roles import Statuses

PHASES = ("prepare", "demonstrations", "warm start", "learning", "results")
_LEARNING = PHASES.index("learning")


class QuickstartDisplay:
    """The flow writes `phase`, `statuses` and `watch`; the terminal asks for `view`."""

    def __init__(
        self,
        *,
        title: str,
        num_demonstrations: int,
        num_train: int,
        num_evaluation: int,
        warm_target: float,
        bar: float,
        max_staleness: int | None,
    ) -> None:
        self.phase = 0
        self.statuses = Statuses()
        self.watch: RunWatch | None = None
        self._title = title
        self._num_demonstrations = num_demonstrations
        self._num_train = num_train
        self._num_evaluation = num_evaluation
        """Episodes of one evaluation round."""
        self._warm_target = warm_target
        self._bar = bar
        self._max_staleness = max_staleness
        self._began = time.monotonic()
        self._ours: set[str] = set()
        """Every worker that was started here."""

    def view(self) -> View:
        now = time.monotonic()
        return View(
            title=self._title,
            phases=PHASES,
            phase=self.phase,
            remark="Warm-started on demonstrations; from there on it learns from reward alone.",
            elapsed_s=now - self._began,
            roles=self._rows(),
            progress=self._progress(),
            curve=self._curve(),
            metrics=self._metrics(now),
        )

    def _curve(self) -> Curve:
        if self.watch is None or self.phase < _LEARNING:
            return Curve()
        return self.watch.state.curve(bar=self._bar, num_expected=self._num_train)

    def _metrics(self, now: float) -> Metrics:
        if self.watch is None or self.phase < _LEARNING:
            return Metrics()
        return self.watch.state.metrics_now(now, max_staleness=self._max_staleness, queue_depth=self.watch.queue_depth)

    def _rows(self) -> tuple[RoleRow, ...]:
        """Of those that were started here only what runs: one that has ended was heard a moment ago all the same."""
        running = self.statuses.by_name
        self._ours.update(running)
        beats = self.watch.state.heartbeats if self.watch else {}
        return role_rows(
            running, {worker: beat for worker, beat in beats.items() if worker in running or worker not in self._ours}
        )

    def _progress(self) -> tuple[Progress, ...]:
        if self.phase == 0:
            return (Progress(label="tasks and model", done=0, total=1),)
        if self.watch is None:
            return ()
        state = self.watch.state
        match PHASES[self.phase : self.phase + 1]:
            case ("demonstrations",):
                return (Progress(label="demonstrations", done=state.num_episodes, total=self._num_demonstrations),)
            case ("warm start",):
                return (self._warm_progress(),)
            case ("learning" | "results",):
                training = Progress(label="training episodes", done=state.num_episodes, total=self._num_train)
                return (training, *self._evaluations())
            case _:
                return ()

    def _warm_progress(self) -> Progress:
        beats = self.watch.state.heartbeats.values() if self.watch else ()
        metrics = next((beat.metrics for beat in beats if beat.worker == "warm-start"), {})
        success = metrics.get("success", 0.0)
        updates, loss = metrics.get("updates", 0), metrics.get("loss", 0)
        note = f"{100 * success:.0f} % succeed, {updates:.0f} updates, loss {loss:.3f}"
        return Progress(label="until learning begins", done=100 * success, total=100 * self._warm_target, note=note)

    def _evaluations(self) -> tuple[Progress, ...]:
        """Rounds that are not over."""
        rounds = self.watch.state.evaluations.items() if self.watch else ()
        return tuple(
            Progress(
                label=f"evaluating version {version}",
                done=round_.num_judged,
                total=self._num_evaluation,
                note=f"success {round_.success:.2f}",
            )
            for version, round_ in rounds
            if round_.num_judged < self._num_evaluation
        )
