"""Plans an evaluation before anything is played: what is evaluated, and how."""

import hashlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from ops.analysis.evaluation.result import Model, Settings
from ops.analysis.evaluation.settings import fingerprint, settings_of
from ops.archive.durable import write_whole
from ops.config.loading import load_config
from ops.console.output_folder import make_output
from ops.run.base_models import model_folder
from ops.run.folder import RunFolder
from ops.run.hub import HubName
from ops.run.models import checkpoint_folder, is_model, whole_model
from ops.run.tasks import tasks_of
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.ids import RunName
from trainer.versions.checkpoints import hash_files

_RECIPE = "rollout_test"
_LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a person asked for."""

    model: str = ""
    """A version of the run, or a folder; empty: `api`."""
    api: str = ""
    """Name of an endpoint's model."""
    base_url: str = ""
    key_env: str = ""
    run_dir: Path | None = None
    recipe: str | None = None
    tasks: Path | None = None
    repeat: int | None = None
    seed: int | None = None
    out: Path | None = None
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    model: Model
    folder: RunFolder
    """Of the evaluation, which is a run of its own."""
    config: Config
    tasks_file: Path
    tasks_sha256: str
    recipe: str
    num_tasks: int
    settings: Settings

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


def plan_of(request: Request) -> Plan:
    """Raises `ConfigurationError` when there is no such run, model, task file, key or configuration."""
    run = RunFolder(request.run_dir) if request.run_dir else None
    if run is not None:
        run.load()
    recipe = request.recipe or (str(run.config) if run else _RECIPE)
    config = _asked(load_config(recipe, request.overrides), request)
    model, config = _api_model(config, request) if request.api else _folder_model(config, request, run)
    file = (Path(config.data_path) / config.env_config.test_tasks).resolve()
    specs = tasks_of(config, config.env_config.test_tasks)
    size = config.env_config.test_tasks_rollout_size
    num_tasks = len(specs) if size < 0 else len(specs[:size])
    tasks_sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    settings = settings_of(config, tasks_sha256=tasks_sha256, num_tasks=num_tasks)
    named = fingerprint(model, settings, repeat=config.env_config.test_tasks_repeat_times, seed=config.feeder_config.seed)
    home = run.path if run else Path("runs").resolve()
    folder = RunFolder(request.out or home / "evaluations" / f"{_token(model.name)}-{named}")
    return Plan(
        model=model,
        folder=folder,
        config=_as_own_run(config, folder, named),
        tasks_file=file,
        tasks_sha256=tasks_sha256,
        recipe=request.recipe or ("the run's own" if run else _RECIPE),
        num_tasks=num_tasks,
        settings=settings,
    )


def begin(plan: Plan) -> None:
    """Makes the folder, or finds it to be this very evaluation's, which goes on.

    Raises:
        ConfigurationError: it holds something else, or cannot be written.
    """
    folder, wanted = plan.folder, plan.fingerprint.encode() + b"\n"
    stated = folder.path / "fingerprint"
    try:
        known = stated.read_bytes() if stated.exists() else None
        if known not in (None, wanted):
            raise ConfigurationError(
                f"{folder.path} holds another evaluation (of another model, or with other settings): choose another --out"
            )
        if known is None and folder.config.exists():
            raise ConfigurationError(f"{folder.path} holds a run that is no evaluation: choose another --out")
        # First of all: a folder with a configuration and without this is no evaluation's.
        write_whole(make_output(folder.path) / stated.name, wanted)
    except OSError as error:
        raise ConfigurationError(f"{folder.path} cannot be written ({error.strerror}): choose another --out") from error
    folder.create(plan.config)


def _asked(config: Config, request: Request) -> Config:
    env, feeder = config.env_config, config.feeder_config
    if request.tasks is not None:
        env = replace(env, test_tasks=str(request.tasks.resolve()))
    if request.repeat is not None:
        env = replace(env, test_tasks_repeat_times=request.repeat)
    if request.seed is not None:
        feeder = replace(feeder, seed=request.seed)
    return replace(config, env_config=env, feeder_config=feeder)


def _api_model(config: Config, request: Request) -> tuple[Model, Config]:
    base_url = request.base_url or config.policy_config.base_url
    variable = request.key_env or config.policy_config.api_key_env_var
    _require_private(base_url)
    if not os.environ.get(variable):
        raise ConfigurationError(
            f"{variable} is not set: put the endpoint's key there (any text if it asks for none), "
            "or name another variable with --key-env"
        )
    policy = replace(
        config.policy_config, engine="openai", base_model=request.api, base_url=base_url, api_key_env_var=variable
    )
    return Model(name=request.api, kind="api", base_url=base_url), replace(config, policy_config=policy)


def _require_private(base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        holds = not base_url or parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOCAL)
    except ValueError:
        holds = False
    if not holds or "@" in base_url:
        raise ConfigurationError(
            "--base-url has to be https://host/path, or http:// to this machine alone, without a key in it: "
            "key and screenshots would be readable on the way"
        )


def _folder_model(config: Config, request: Request, run: RunFolder | None) -> tuple[Model, Config]:
    if run is not None:
        folder = checkpoint_folder(run, request.model)
        served = whole_model(run, folder)
    else:
        folder = served = _model_alone(request.model)
    name = folder.name if run is not None and folder.parent == run.checkpoints else f"{folder.parent.name}-{folder.name}"
    files = [file for file in hash_files(served) if not file.path.startswith("trainer/")]
    digest = hashlib.sha256(msgspec.json.encode([(file.path, file.sha256) for file in files])).hexdigest()
    policy, trainer = config.policy_config, config.trainer_config
    engine = policy.engine if policy.engine == "simulated" else "vllm"
    return Model(name=name, kind="folder", sha256=digest), replace(
        config,
        policy_config=replace(policy, engine=engine, base_model=str(served), checkpoint_path=""),
        trainer_config=replace(trainer, lora=replace(trainer.lora, rank=0)),
    )


def _model_alone(named: str) -> Path:
    """Of no run: a folder of a whole model or of adapters, or a name of the hub."""
    folder = Path(named).resolve()
    if is_model(folder):
        return folder
    if Path(named).exists() or HubName.of(named) is None:
        raise ConfigurationError(
            f"{folder} is not the folder of a model: write one, a name of the hub, or a version and its run with --run-dir"
        )
    return model_folder(named)


def _as_own_run(config: Config, folder: RunFolder, named: str) -> Config:
    """On a server of its own, in mode eval, where only the judge of `judge_config` works."""
    bus = replace(
        config.bus_config,
        run=RunName(f"evaluation-{named}"),
        url="",
        keys="",
        credentials_file="",
        replicas=1,
        guest_runs=(),
        rubrics=(config.judge_config.rubric,),
    )
    feeder = replace(config.feeder_config, mode="eval", demonstrate=False)
    data_path = str(Path(config.data_path).resolve())
    return replace(config, save_path=str(folder.path), data_path=data_path, bus_config=bus, feeder_config=feeder)


def _token(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "-", name)[:80]
