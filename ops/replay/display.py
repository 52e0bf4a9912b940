"""Builds the display of an offline training: its phases, roles, progress, and the success of the stored episodes."""

import time
from dataclasses import replace

from ops.monitor.role_rows import role_rows
from ops.monitor.run_watch import RunWatch
from ops.monitor.view import Progress, View
from ops.processes.local_roles import Statuses
from ops.replay.player import Played
from schemas.config import Config

PHASES = ("import", "train")


class ReplayDisplay:
    """The flow writes `phase`, `config` and what was played; the terminal asks for `view`."""

    def __init__(
        self, config: Config, statuses: Statuses, watch: RunWatch, num_episodes: int | None, limit: int | None = None
    ) -> None:
        """`num_episodes`: of the source, where it is known. `limit`: how many are selected at most."""
        self.phase = 0
        self.config = config
        self._statuses = statuses
        self._watch = watch
        self._num_episodes, self._limit = num_episodes, limit
        self._played = Played()
        self._began = time.monotonic()

    def note_played(self, played: Played) -> None:
        self._played = replace(played)

    def view(self) -> View:
        state = self._watch.state
        return View(
            title="Millrace offline training",
            phases=PHASES,
            phase=self.phase,
            remark="Learns from stored episodes alone: no browser, no policy, no feeder.",
            elapsed_s=time.monotonic() - self._began,
            roles=role_rows(self._statuses.by_name, state.heartbeats),
            progress=(self._reading(), self._training())[: self.phase + 1],
            metrics=state.metrics_now(time.monotonic(), max_staleness=None, queue_depth=None),
            curve=state.curve(bar=None, num_expected=self.config.feeder_config.num_stored),
        )

    def _reading(self) -> Progress:
        note = f"{self._played.num_replayed} selected"
        done, total = self._played.share(self._num_episodes, self._limit)
        return Progress(label="stored episodes", done=done, total=total, note=note)

    def _training(self) -> Progress:
        state = self._watch.state
        note = f"loss {state.metrics['loss']:.4f}" if "loss" in state.metrics else ""
        total = self.config.feeder_config.num_iterations
        return Progress(label="versions", done=len(state.versions), total=total, note=note)
