"""Finds the model that is to be evaluated, names it by its content, and says so in the configuration."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from ops.analysis.evaluation.identity import Model
from ops.analysis.evaluation.request import Request
from ops.run.base_models import model_folder
from ops.run.folder import RunFolder
from ops.run.hub import HubName
from ops.run.models import checkpoint_folder, is_model, whole_model
from schemas.config import Config
from schemas.errors import ConfigurationError
from trainer.versions.checkpoints import hash_files

_LOCAL = ("localhost", "127.0.0.1", "::1")


def evaluated_model(config: Config, request: Request, run: RunFolder | None) -> tuple[Model, Config]:
    """Raises `ConfigurationError` when there is none, or its endpoint cannot be asked."""
    return _api_model(config, request) if request.api else _folder_model(config, request, run)


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
    named = request.model or ("0" if run is not None else config.policy_config.starting_model)
    if not named:
        raise ConfigurationError("no model is named: write MODEL, --api NAME, or policy_config.base_model=MODEL")
    if run is not None:
        folder = checkpoint_folder(run, named)
        served = whole_model(run, folder)
    else:
        folder = served = _model_alone(named)
    name = folder.name if run is not None and folder.parent == run.checkpoints else f"{folder.parent.name}-{folder.name}"
    files = [file for file in hash_files(served) if not file.path.startswith("trainer/")]
    digest = hashlib.sha256(msgspec.json.encode([(file.path, file.sha256) for file in files])).hexdigest()
    policy, trainer = config.policy_config, config.trainer_config
    engine = policy.engine if policy.engine == "simulated" else "vllm"
    return Model(name=name, kind="folder", sha256=digest), replace(
        config,
        policy_config=replace(policy, engine=engine, base_model=_anywhere(named, served), checkpoint_path=""),
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


def _anywhere(named: str, served: Path) -> str:
    """The name under which a policy has it on any machine: of the hub's, with the commit; else the folder."""
    name = HubName.of(named)
    if name is None or Path(named).exists() or "snapshots" not in served.parts:
        return str(served)
    return str(HubName(name.repository, served.name))
