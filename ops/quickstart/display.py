"""Builds the display of a quickstart: its phases, roles, progress, curve and metrics."""

import time

from ops.monitor.role_rows import role_rows
from ops.monitor.run_watch import RunState, RunWatch
from ops.monitor.view import Curve, Feed, Metrics, Progress, RoleRow, View
from ops.processes.local_roles import Statuses
from ops.quickstart.recipe import WarmStart
from ops.quickstart.warm_course import WarmCourse
from schemas.messages import Judgement, Verdict
from schemas.text import visible

PHASES = ("prepare", "demonstrations", "warm start", "learning", "results")
_WARM_START, _LEARNING = PHASES.index("warm start"), PHASES.index("learning")
_LONGEST = 200
_GOAL = "goal of the quickstart"


class QuickstartDisplay:
    """The flow writes `phase`, `statuses` and `watch`; the terminal asks for `view`."""

    def __init__(
        self,
        *,
        title: str,
        num_demonstrations: int,
        num_train: int,
        num_evaluation: int,
        warm_start: WarmStart,
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
        self._warm_start = warm_start
        self._bar = bar
        self._max_staleness = max_staleness
        self._began = time.monotonic()
        self._course = WarmCourse()
        self._ours: set[str] = set()
        """Every worker that was started here."""

    def view(self) -> View:
        now = time.monotonic()
        progress = self._progress()  # notes how the warm start goes, too
        return View(
            title=self._title,
            phases=PHASES,
            phase=self.phase,
            remark="Warm-started on demonstrations; from there on it learns from reward alone.",
            elapsed_s=now - self._began,
            roles=self._rows(),
            progress=progress,
            curve=self._curve(),
            feed=self._feed(),
            metrics=self._metrics(now),
        )

    def _curve(self) -> Curve | None:
        """Of learning; before, how the warm start does what was demonstrated."""
        if self.phase == _WARM_START:
            return self._course.curve(self._warm_start)
        if self.watch is None or self.phase < _LEARNING:
            return None
        return self.watch.state.curve(bar=self._bar, bar_label=_GOAL, num_expected=self._num_train)

    def _feed(self) -> Feed | None:
        """What happens before anything can be drawn as a curve."""
        if self.phase < _WARM_START:
            state = self.watch.state if self.watch else RunState()
            return Feed(
                title="demonstrations" if self.watch else "tasks and model",
                pages=tuple(sorted(state.num_by_page.items())),
                latest=tuple(map(_told, reversed(state.latest))),
                waits_for="the oracle is about to play the first pages" if self.watch else "pages and a tiny model are made",
            )
        if self.phase == _WARM_START and not self._course.successes:
            return Feed(title="warm start", waits_for="it imitates the demonstrations; the curve begins with the first look")
        return None

    def _metrics(self, now: float) -> Metrics | None:
        if self.watch is None or self.phase == _WARM_START:
            return None
        if self.phase < _LEARNING:
            state = self.watch.state
            return Metrics(num_episodes=state.num_episodes, episodes_per_s=state.episodes_per_s(now))
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
        self._course.note(metrics)
        success = metrics.get("success", 0.0)
        updates, loss = metrics.get("updates", 0), metrics.get("loss", 0)
        told = f"loss {loss:.3f} {self._course.loss_bars}".rstrip()
        where = f" on the {num_worst} worst pages" if (num_worst := self._warm_start.num_worst) else ""
        note = f"{told}, {updates:.0f} updates, {100 * success:.0f} % succeed{where}"
        total = 100 * self._warm_start.target_success
        return Progress(label="until learning begins", done=100 * success, total=total, note=note)

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


def _told(judgement: Judgement) -> str:
    """One episode as a line: how it ended, and what was to be done."""
    trajectory = judgement.trajectory
    mark = "✓" if judgement.verdict is Verdict.SUCCESS else "✗"
    steps = f"{trajectory.num_steps} step{'' if trajectory.num_steps == 1 else 's'}"
    return f"{mark} {steps:<8} {visible(trajectory.task.instruction, _LONGEST)}"
