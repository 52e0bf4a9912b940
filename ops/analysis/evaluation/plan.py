"""Plans an evaluation before anything is played: what is evaluated, and how. Nothing is written."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ops.analysis.evaluation.asked import (
    all_overrides,
    asked_config,
    names_servers,
    own_name,
    own_prompts,
    own_run,
    require_judge_model,
)
from ops.analysis.evaluation.evaluated_model import evaluated_model
from ops.analysis.evaluation.identity import Identity, Model, ProtocolStamp
from ops.analysis.evaluation.protocol import Protocol, TaskChoice
from ops.analysis.evaluation.protocol_file import find_protocol
from ops.analysis.evaluation.request import Request
from ops.analysis.evaluation.result import Settings
from ops.analysis.evaluation.settings import fingerprint, protocol_settings, settings_of
from ops.analysis.evaluation.task_choice import choose, reference_lengths
from ops.run.folder import RunFolder
from ops.run.tasks import task_file_of
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.ids import RunName

_RECIPE = "rollout_test"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Of an evaluation with one seed."""

    model: Model
    folder: RunFolder
    """Of the evaluation, which is a run of its own."""
    config: Config
    tasks_file: Path
    tasks_sha256: str
    recipe: str
    num_tasks: int
    settings: Settings
    trained_on: tuple[Path, ...] = ()
    """Task files of the model's training, as far as they are known."""
    protocol: Protocol | None = None
    own_tasks: bytes = b""
    """The task file that is played, where it is not `tasks_file` itself."""
    lengths: Mapping[str, int] = field(default_factory=dict)
    """Steps that people took, where a submission is asked for."""
    run_name: str = ""
    """That a person gave to the run on given servers; empty: it is named by what the figures depend on."""

    @property
    def repeat(self) -> int:
        return self.config.env_config.test_tasks_repeat_times

    @property
    def seed(self) -> int:
        return self.config.feeder_config.seed

    @property
    def num_episodes(self) -> int:
        return self.num_tasks * self.repeat

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.model, self.settings, repeat=self.repeat, seed=self.seed)

    @property
    def stamp(self) -> ProtocolStamp | None:
        if (said := self.protocol) is None:
            return None
        return ProtocolStamp(name=said.name, sha256=said.sha256, about=said.about, differs=said.differs)

    @property
    def identity(self) -> Identity:
        return Identity(model=self.model, protocol=self.stamp)

    @property
    def is_on_servers(self) -> bool:
        """Whether others serve the run, and others start its workers."""
        return self.config.bus_config.url != ""

    def with_seed(self, seed: int, folder: RunFolder) -> "Plan":
        """The same in a folder of its own; where it has its own server, as a run of its own name."""
        feeder = replace(self.config.feeder_config, seed=seed)
        return _placed(replace(self, config=replace(self.config, feeder_config=feeder)), folder)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """All that is asked for at once."""

    folder: Path
    """Where the result of all seeds stands."""
    plans: tuple[Plan, ...]
    """A seed each."""
    seeds: tuple[int, ...]
    """All of the protocol, also those that are not asked for now."""

    def folder_of(self, seed: int) -> RunFolder:
        return RunFolder(self.folder if len(self.seeds) == 1 else self.folder / f"seed-{seed}")


def evaluation_of(request: Request) -> Evaluation:
    """Raises `ConfigurationError` as `plan_of`, and where several seeds are to be played on the servers of one run."""
    plan = plan_of(request)
    seeds = plan.protocol.seeds if plan.protocol else (plan.seed,)
    if len(seeds) == 1:
        return Evaluation(folder=plan.folder.path, plans=(plan,), seeds=seeds)
    wanted = seeds if request.seed is None else (request.seed,)
    if plan.is_on_servers and len(wanted) > 1:
        raise ConfigurationError(
            f"the protocol has the seeds {', '.join(map(str, seeds))}, and on given servers each is a run of its own: "
            "evaluate one after the other, as in --seed 0 bus_config.run=NAME; with the same --out their figures come together"
        )
    named = fingerprint(plan.model, plan.settings, repeat=plan.repeat, seed=seeds)
    whole = request.out or plan.folder.path.with_name(f"{_token(plan.model.name)}-{named}")
    evaluation = Evaluation(folder=whole, plans=(), seeds=seeds)
    return replace(evaluation, plans=tuple(plan.with_seed(seed, evaluation.folder_of(seed)) for seed in wanted))


def plan_of(request: Request) -> Plan:
    """Of the seed that is asked for, else of the first.

    Raises `ConfigurationError` when there is no such run, model, protocol, task file, key or configuration.
    """
    run = RunFolder(request.run_dir) if request.run_dir else None
    if run is not None:
        run.load()
    protocol = find_protocol(request.protocol) if request.protocol else None
    recipe = request.recipe or (str(run.config) if run else _RECIPE)
    overrides = all_overrides(protocol, request)
    config = _asked(protocol, recipe, overrides, request)
    model, config = evaluated_model(config, request, run)
    tasks = _tasks(config, protocol, request)
    settings = settings_of(config, tasks_sha256=tasks.played_sha256, num_tasks=tasks.number)
    settings |= own_prompts(config) | (protocol_settings(protocol) if protocol else {})
    plan = Plan(
        model=model,
        folder=RunFolder(Path()),
        config=own_run(config, on_servers=names_servers(overrides)),
        tasks_file=tasks.file,
        tasks_sha256=tasks.sha256,
        recipe=request.recipe or ("the run's own" if run else _RECIPE),
        num_tasks=tasks.number,
        settings=settings,
        trained_on=_given(request.trained_on) or (_training(config) if run else ()),
        protocol=protocol,
        own_tasks=tasks.own,
        lengths=tasks.lengths,
        run_name=own_name(overrides, config, run),
    )
    home = run.path if run else Path("runs").resolve()
    return _placed(plan, RunFolder(request.out or home / "evaluations" / f"{_token(model.name)}-{plan.fingerprint}"))


def _asked(protocol: Protocol | None, recipe: str, overrides: Sequence[str], request: Request) -> Config:
    """Raises `ConfigurationError` that names the protocol, where there is one."""
    if protocol is None:
        return asked_config(recipe, overrides, request)
    try:
        config = asked_config(recipe, overrides, request)
        require_judge_model(protocol, config.judge_config)
    except ConfigurationError as error:
        raise ConfigurationError(f"with the protocol {request.protocol}: {error}") from error
    return config


def _given(files: tuple[Path, ...]) -> tuple[Path, ...]:
    """Raises `ConfigurationError` now, before anything is played."""
    for file in files:
        if not file.is_file():
            raise ConfigurationError(f"--trained-on {file} is no file: name a task file of the model's training")
    return files


def _training(config: Config) -> tuple[Path, ...]:
    """The run's own, where it is still there."""
    file = (Path(config.data_path) / config.env_config.train_tasks).resolve()
    return (file,) if file.is_file() else ()


def _placed(plan: Plan, folder: RunFolder) -> Plan:
    """In its folder, under its run's name, with the file that its tasks are in."""
    config, env = plan.config, plan.config.env_config
    if plan.own_tasks:
        env = replace(env, test_tasks=str(folder.tasks / plan.tasks_file.name))
    bus = replace(config.bus_config, run=RunName(plan.run_name or f"evaluation-{plan.fingerprint}"))
    return replace(plan, folder=folder, config=replace(config, save_path=str(folder.path), env_config=env, bus_config=bus))


@dataclass(frozen=True, kw_only=True)
class _Tasks:
    file: Path
    sha256: str
    """Of the file."""
    number: int
    own: bytes
    lengths: Mapping[str, int]

    @property
    def played_sha256(self) -> str:
        return hashlib.sha256(self.own).hexdigest() if self.own else self.sha256


def _tasks(config: Config, protocol: Protocol | None, request: Request) -> _Tasks:
    file, size = task_file_of(config, config.env_config.test_tasks).resolve(), config.env_config.test_tasks_rollout_size
    chosen = choose(file, protocol.tasks if protocol else TaskChoice(file=file.name))
    return _Tasks(
        file=file,
        sha256=chosen.sha256,
        number=len(chosen.tasks) if size < 0 else min(size, len(chosen.tasks)),
        own=chosen.content,
        lengths=reference_lengths(chosen) if request.submission is not None else {},
    )


def _token(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "-", name)[:80]
