"""Builds the display of a run on this machine: roles, progress, curve and metrics."""

import time

from ops.monitor.role_rows import role_rows
from ops.monitor.run_watch import Evaluation, RunWatch
from ops.monitor.view import Progress, View
from ops.processes.local_roles import Statuses
from schemas.config import Config


class MachineDisplay:
    """The flow says when it is done; the terminal asks for `view`."""

    def __init__(self, config: Config, statuses: Statuses, watch: RunWatch) -> None:
        self.done = False
        self._config = config
        self._statuses = statuses
        self._watch = watch
        self._began = time.monotonic()

    def view(self) -> View:
        state, feeder = self._watch.state, self._config.feeder_config
        now = time.monotonic()
        return View(
            title=f"Millrace run {self._config.bus_config.run}  {feeder.mode}",
            phases=("running",),
            phase=int(self.done),
            elapsed_s=now - self._began,
            roles=role_rows(self._statuses.by_name, state.heartbeats),
            progress=(*self._training(), *map(self._evaluation, list(state.evaluations.items())[-1:])),
            curve=state.curve(bar=None, num_expected=self._num_train) if feeder.trains else None,
            metrics=state.metrics_now(now, max_staleness=feeder.staleness_bound, queue_depth=self._watch.queue_depth),
        )

    @property
    def _num_train(self) -> int:
        return self._config.feeder_config.num_iterations * self._config.env_config.train_tasks_rollout_size

    def _training(self) -> tuple[Progress, ...]:
        state = self._watch.state
        note = f"version {state.versions[-1].version}" if state.versions else ""
        if not self._config.feeder_config.trains:
            return ()
        return (Progress(label="training episodes", done=state.num_episodes, total=self._num_train, note=note),)

    def _evaluation(self, round_: tuple[int, Evaluation]) -> Progress:
        """The newest one."""
        version, evaluation = round_
        env = self._config.env_config
        total = env.test_tasks_rollout_size * env.test_tasks_repeat_times if env.test_tasks_rollout_size >= 0 else None
        return Progress(
            label=f"evaluating version {version}",
            done=evaluation.num_judged,
            total=total,
            note=f"success {evaluation.success:.2f}",
        )
