"""Makes of recipe, protocol and command line the configuration of a run that evaluates."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from agents.prompt_file import is_prompt_file
from ops.analysis.evaluation.pins import pinned, require_free
from ops.analysis.evaluation.protocol import Protocol
from ops.analysis.evaluation.request import Request
from ops.analysis.evaluation.result import Setting
from ops.config.loading import load_config, overridden_keys
from ops.config.overrides import as_overrides
from ops.run.folder import RunFolder
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.extensions import JUDGES
from schemas.judge_config import JudgeConfig
from schemas.requirement import require

_URL, _RUN = "bus_config.url", "bus_config.run"


def all_overrides(protocol: Protocol | None, request: Request) -> tuple[str, ...]:
    """What counts over the recipe; of two that name one key, the later.

    Raises:
        ConfigurationError: the command line says something that is the protocol's to say.
    """
    if protocol is None:
        return request.overrides
    require_free(request.overrides)
    require(
        request.repeat is None,
        f"--repeat is what the protocol says as repeats ({protocol.repeats}): leave it out, or copy the protocol",
    )
    require(
        request.seed is None or request.seed in protocol.seeds,
        f"--seed {request.seed} is none of the protocol's seeds: write one of {', '.join(map(str, protocol.seeds))}",
    )
    said = {**protocol.configuration, **pinned(protocol)}
    return (*as_overrides(said), *request.overrides)


def asked_config(recipe: str | Path, overrides: Sequence[str], request: Request) -> Config:
    config = load_config(recipe, overrides)
    env, feeder = config.env_config, config.feeder_config
    if request.tasks is not None:
        env = replace(env, test_tasks=str(request.tasks.resolve()))
    if request.repeat is not None:
        env = replace(env, test_tasks_repeat_times=request.repeat)
    if request.seed is not None:
        feeder = replace(feeder, seed=request.seed)
    return replace(config, env_config=env, feeder_config=feeder)


def require_judge_model(protocol: Protocol, judging: JudgeConfig) -> None:
    """Raises `ConfigurationError` where a judge of Millrace asks a model and the protocol does not say which."""
    asking = [name for name in _judges(judging.judge, judging) if JUDGES.find(name).traits.asks_models]
    require(
        protocol.judge.model != "" or not asking,
        f"judge.model is empty, and {', '.join(asking)} asks one: write which, figures depend on it",
    )


def _judges(name: str, judging: JudgeConfig) -> Iterator[str]:
    """Those of Millrace, also within a composite: what others ask is theirs to know."""
    if name in judging.composites:
        for part in judging.composites[name].parts:
            yield from _judges(part, judging)
    elif name in JUDGES.builtin:
        yield name


def names_servers(overrides: Sequence[str]) -> bool:
    """Whether it is to be played on given servers. That a run was, says nothing about its evaluation."""
    return _URL in _said(overrides)


def own_name(overrides: Sequence[str], config: Config, run: RunFolder | None) -> str:
    """That a person gives to the run on given servers, where keys are of a run. Empty: none.

    Raises:
        ConfigurationError: it is the name of the run whose model is evaluated.
    """
    if not {_URL, _RUN} <= _said(overrides):
        return ""
    name = config.bus_config.run
    require(
        run is None or run.load().bus_config.run != name,
        f"bus_config.run is {name}, the run whose model is evaluated: write the name of a run that holds no episodes",
    )
    return name


def own_run(config: Config, *, on_servers: bool) -> Config:
    """In mode eval, where only the judge of `judge_config` works; unless it is on given servers, on a server of its own."""
    bus = replace(config.bus_config, guest_runs=(), rubrics=(config.judge_config.rubric,))
    if on_servers:
        bus = replace(bus, keys=_whole(bus.keys), ca_file=_whole(bus.ca_file), credentials_file=_whole(bus.credentials_file))
    else:
        bus = replace(bus, url="", keys="", credentials_file="", replicas=1)
    feeder = replace(config.feeder_config, mode="eval", demonstrate=False)
    return replace(config, data_path=str(Path(config.data_path).resolve()), bus_config=bus, feeder_config=feeder)


def own_prompts(config: Config) -> dict[str, Setting]:
    """What stands in prompt files of a person's own, as a digest: their names say nothing of it."""
    prompt, folder = config.model_config.prompt_version, config.judge_config.prompts
    named = {"prompt_file": [Path(prompt)] if is_prompt_file(prompt) else []}
    named["judge_prompt_files"] = sorted(Path(folder).glob("*.txt")) if folder else []
    return {name: _digest(files) for name, files in named.items() if files}


def _digest(files: Sequence[Path]) -> str:
    """Of names and contents. Raises `ConfigurationError`."""
    try:
        said = [(file.name, file.read_bytes()) for file in files]
    except OSError as error:
        raise ConfigurationError(f"{error.filename} cannot be read ({error.strerror}): name a file of a prompt") from error
    return hashlib.sha256(msgspec.json.encode(said)).hexdigest()


def _whole(path: str) -> str:
    return str(Path(path).expanduser().resolve()) if path else ""


def _said(overrides: Sequence[str]) -> set[str]:
    return {key for key, is_deleted in overridden_keys(overrides) if not is_deleted}
