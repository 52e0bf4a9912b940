"""The quickstart: the whole loop on this machine, from nothing to a policy that has learnt, in one command.

    prepare         a tiny model, its tokenizer, three task files
    demonstrations  the oracle plays through the same browser workers, policy worker, judge and bus
    warm start      the model imitates them until there is something that reward can tell apart
    learning        feeder, browser, policy, judge and trainer run until the last evaluation round is over
    results         counts from the streams, the curve, a solved episode, result.json

A phase whose product is there already is not done again, so a quickstart that was killed goes on where it was. A folder with a
finished one is set aside, and a new one begins.
"""

import dataclasses
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import anyio

from bus.patience import fail_after_running
from ops.audit.audit import audit
from ops.config.loading import dump_config
from ops.console.terminal import Console
from ops.monitor.dashboard import dashboard
from ops.monitor.run_watch import RunWatch
from ops.processes.local_roles import LocalRoles, local_roles
from ops.processes.supervisor import RoleSpec
from ops.quickstart.display import PHASES, QuickstartDisplay
from ops.quickstart.ending import farewell, result_table
from ops.quickstart.overlap import count_overlap
from ops.quickstart.page_results import page_results, page_table
from ops.quickstart.plots import plot_curve
from ops.quickstart.recipe import Family, WarmStart, family_named, lesson_config
from ops.quickstart.results import (
    Lesson,
    Result,
    Timing,
    judgements_of,
    result,
    solved_episode_strip,
)
from ops.run.alone import alone
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.logs import role_logs
from schemas.algorithm_config import AlgorithmConfig
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.ids import PolicyVersion, RunName
from schemas.messages import Role, Split
from schemas.objective_config import ObjectiveConfig

_CATCH_UP_S = 30.0
_PLAYING_ROLES = (Role.FEEDER, Role.BROWSER, Role.POLICY, Role.JUDGE)
_LOOP_ROLES = (*_PLAYING_ROLES, Role.TRAINER)
_OF_CRITIC = dict.fromkeys(("ppo", "bi_level_gae"), ("objective_config.critic.learning_rate=1.0e-3",))
"""By objective: a critic as tiny as the policy learns as fast."""


async def main(
    *,
    run_dir: Path,
    seed: int,
    family: Family,
    objective: str,
    mode: Literal["async", "sync"],
    overrides: Sequence[str],
) -> int:
    """Returns 0 when the run has ended, whatever was learnt; the figures say how well."""
    folder = RunFolder(run_dir)
    _set_aside_finished(folder)
    config = lesson_config(
        family,
        objective,
        [
            f"feeder_config.seed={seed}",
            f"trainer_config.seed={seed}",
            f"feeder_config.mode={mode}",
            *_OF_CRITIC.get(objective, ()),
            *overrides,
        ],
    )
    config = dataclasses.replace(config, save_path=str(folder.path), data_path=str(folder.path))
    quickstart = Quickstart(
        folder, config, Lesson(seed=seed, family=family.name, observe=family.observe, objective=objective, mode=mode)
    )
    require_own(folder, quickstart.config)
    console = Console()
    folder.create(quickstart.config)
    # The terminal belongs to the display; what happens is in the log.
    with (
        (folder.logs / "quickstart.out").open("a") as output,
        role_logs(folder.logs / "quickstart.log", run=config.bus_config.run, role="quickstart", worker="", stream=output),
    ):
        async with dashboard(quickstart.display.view, console):
            outcome = await quickstart.run()
    console.print(result_table(outcome))
    if len(outcome.pages) > 1:
        console.print(page_table(outcome.pages))
    console.print(farewell(folder, outcome), soft_wrap=True, highlight=False)
    return 0


def _set_aside_finished(folder: RunFolder) -> None:
    if folder.result.exists():
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(folder.result.stat().st_mtime))
        with alone(folder):
            folder.path.rename(folder.path.with_name(f"{folder.path.name}-{stamp}"))


def require_own(folder: RunFolder, config: Config) -> None:
    """Raises `ConfigurationError` where another run has begun, or one with other settings."""
    if folder.config.exists() and folder.load() != config:
        raise ConfigurationError(
            f"{folder.path} holds a run that was begun with other settings: write the same, or another --run-dir"
        )


class Quickstart:
    """One quickstart; `display` says at any time how it stands."""

    def __init__(self, folder: RunFolder, config: Config, lesson: Lesson) -> None:
        self._folder = folder
        self._lesson = lesson
        self._family = family_named(lesson.family, lesson.observe)
        self._num_train = config.feeder_config.num_iterations * config.env_config.train_tasks_rollout_size
        self._demo_config = _demonstrations_config(config, self._family, folder.model)
        self.config = _with_guest(_with_model(config, folder.path / "warm" / "model"), self._demo_config.bus_config.run)
        self.display = QuickstartDisplay(
            title=f"Millrace quickstart  seed {lesson.seed}  {lesson.mode}",
            num_demonstrations=self._family.num_demonstrations,
            num_train=self._num_train,
            num_evaluation=self._num_evaluation,
            warm_start=self._family.warm_start,
            bar=self._family.bar,
            max_staleness=config.feeder_config.staleness_bound,
        )
        self._began = time.monotonic()

    async def run(self) -> Result:
        async with local_roles(self._folder) as roles:
            await self.prepare(roles)
            setup_seconds = time.monotonic() - self._began
            return await self._learn(roles, setup_seconds)

    async def prepare(self, roles: LocalRoles) -> None:
        """Serves the run, and comes to a policy that was warm-started."""
        self._demo_file.write_text(dump_config(self._demo_config))
        self.display.statuses = roles.statuses
        await roles.serve(self.config)
        await self._make_material(roles)
        await self._demonstrate(roles)
        await self._warm_start(roles)

    async def _make_material(self, roles: LocalRoles) -> None:
        if (self._folder.tasks / "held_out.jsonl").exists() and (self._folder.model / "config.json").exists():
            return
        await self._run_once(
            roles, "pages-and-model", "ops.quickstart.material", *self._pages, "--seed", str(self._lesson.seed)
        )

    async def _run_once(self, roles: LocalRoles, name: str, module: str, *arguments: str) -> None:
        """Runs a module of the quickstart's own as a supervised process, until it has done its work."""
        argv = (sys.executable, "-P", "-m", module, "--run-dir", str(self._folder.path), *arguments)
        await roles.run(RoleSpec(role=Role.TRAINER, name=name, argv=argv))
        roles.statuses.forget_ended()

    async def _demonstrate(self, roles: LocalRoles) -> None:
        self.display.phase = 1
        if self._warm_model.exists():
            return
        demonstrators = roles.guests(self._demo_file, prefix="demo-")
        async with self._watching(self._demo_config):
            demonstrators.start(*_PLAYING_ROLES)
            await demonstrators.finished(Role.FEEDER)
            await demonstrators.stop(*_PLAYING_ROLES)
        roles.statuses.forget_ended()

    async def _warm_start(self, roles: LocalRoles) -> None:
        self.display.phase = 2
        if self._warm_model.exists():
            return
        async with self._watching(self._demo_config):
            await self._run_once(
                roles, "warm-start", "ops.quickstart.warm_start", "--config", str(self._demo_file), *self._pages
            )

    async def _learn(self, roles: LocalRoles, setup_seconds: float) -> Result:
        self.display.phase = 3
        began = time.monotonic()
        async with self._watching(self.config) as watch:
            roles.start(*_LOOP_ROLES)
            await roles.finished(Role.FEEDER)
            loop_seconds = time.monotonic() - began
            self.display.phase = 4
            await self._results_complete(watch)
            await roles.finished(Role.TRAINER)  # behind the last version it has lines to write
            return await self._conclude(roles, watch, began, setup_seconds, loop_seconds)

    async def _results_complete(self, watch: RunWatch) -> None:
        """The watch reads the same streams as the feeder, and may be a moment behind it."""
        last = PolicyVersion(self.config.feeder_config.num_iterations)
        async with fail_after_running(_CATCH_UP_S):
            await watch.wait_until(lambda state: state.num_evaluated(last) >= self._num_evaluation)

    async def _conclude(
        self, roles: LocalRoles, watch: RunWatch, began_at: float, setup_seconds: float, loop_seconds: float
    ) -> Result:
        await roles.stop(*_LOOP_ROLES)
        subjects, rubric = subjects_of(self.config), self.config.bus_config.trained_rubric
        async with join(self._folder, self.config, role=Role.MONITOR.value, name="results") as bus:
            last = PolicyVersion(self.config.feeder_config.num_iterations)
            trained, held_out = [await judgements_of(bus, subjects, rubric, split) for split in (Split.TRAIN, Split.EVAL)]
            outcome = result(
                watch.state,
                (await audit(bus, self.config)).findings,
                self._lesson,
                Timing(setup_s=setup_seconds, loop_s=loop_seconds, began_at=began_at),
                last_version=last,
                num_restarts=sum(status.num_restarts for status in roles.statuses.by_name.values()),
                overlap=await count_overlap(bus, subjects, trained, held_out),
                pages=page_results(held_out, last=last, unseen_pages=self._family.unseen_pages),
            )
            strip = await solved_episode_strip(bus, subjects, held_out)
        curve = watch.state.curve(bar=self._family.bar, num_expected=self._num_train)
        plot_curve(
            curve,
            self._folder.path / "curve.png",
            title=f"Quickstart, {self._lesson.objective}, seed {self._lesson.seed}: {self._lesson.family}",
        )
        if strip is not None:
            (self._folder.path / "episode.png").write_bytes(strip)
        outcome.write(self._folder.result)
        self.display.phase = len(PHASES)
        return outcome

    @property
    def _num_evaluation(self) -> int:
        """Episodes of one evaluation round."""
        env, num_tasks = self.config.env_config, self._family.num_held_out + self._family.num_unseen
        size = min(env.test_tasks_rollout_size, num_tasks) if env.test_tasks_rollout_size >= 0 else num_tasks
        return size * env.test_tasks_repeat_times

    @property
    def _pages(self) -> tuple[str, ...]:
        """As the quickstart's own processes are told."""
        return "--family", self._family.name, "--observe", self._family.observe

    @property
    def _warm_model(self) -> Path:
        return self._folder.path / "warm" / "model"

    @property
    def _demo_file(self) -> Path:
        return self._folder.path / "demonstrations.yaml"

    @asynccontextmanager
    async def _watching(self, config: Config) -> AsyncIterator[RunWatch]:
        subjects = subjects_of(config)
        async with (
            join(self._folder, config, role=Role.MONITOR.value, name="quickstart") as bus,
            anyio.create_task_group() as group,
        ):
            watch = self.display.watch = RunWatch(
                bus, subjects, config.bus_config, unseen_pages=frozenset(self._family.unseen_pages)
            )
            group.start_soon(watch.run)
            yield watch
            group.cancel_scope.cancel()


def _with_model(config: Config, model: Path) -> Config:
    return dataclasses.replace(config, policy_config=dataclasses.replace(config.policy_config, base_model=str(model)))


def _with_guest(config: Config, run: RunName) -> Config:
    return dataclasses.replace(config, bus_config=dataclasses.replace(config.bus_config, guest_runs=(run,)))


def _demonstrations_config(config: Config, family: Family, model: Path) -> Config:
    """The same loop without training, answered by the oracle, as a run of its own on the same server."""
    config = _with_model(config, model)
    return dataclasses.replace(
        config,
        policy_config=dataclasses.replace(config.policy_config, engine="oracle"),
        bus_config=dataclasses.replace(config.bus_config, run=RunName(f"{config.bus_config.run}-demonstrations")),
        env_config=dataclasses.replace(
            config.env_config, train_tasks="tasks/demonstrations.jsonl", train_tasks_rollout_size=family.num_demonstrations
        ),
        feeder_config=dataclasses.replace(
            config.feeder_config,
            mode="rollout",
            demonstrate=True,
            num_iterations=1,
            evaluate_first=False,
            evaluate_last=False,
        ),
        algorithm_config=_warm_start_algorithm(config.algorithm_config, family.warm_start),
        objective_config=ObjectiveConfig(),
    )


def _warm_start_algorithm(algorithm: AlgorithmConfig, settings: WarmStart) -> AlgorithmConfig:
    """A rate that falls while learning from reward falls here too, to nothing at the last update that there may be."""
    falls = algorithm.lr_scheduler_steps > 0
    return dataclasses.replace(
        algorithm,
        learning_rate=settings.learning_rate,
        per_device_train_batch_size=settings.batch_size or algorithm.per_device_train_batch_size,
        lr_scheduler_steps=settings.max_updates if falls else 0,
    )
