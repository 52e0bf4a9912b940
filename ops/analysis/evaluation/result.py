"""Holds an evaluation's result as `result.json` does: the metrics, and everything that they depend on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from ops.analysis.evaluation.estimators import Estimate, Tries
from schemas.errors import ConfigurationError

Setting = str | int | float | bool | None
Settings = Mapping[str, Setting]


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was evaluated."""

    name: str
    kind: Literal["folder", "api"]
    sha256: str = ""
    """Of a folder: of its files' hashes."""
    base_url: str = ""
    """Of an endpoint."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the episodes."""

    num_successes: int
    num_scored: int
    num_episodes: int


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """In the currency of `openai_config.prices`."""

    policy: float | None
    """None: the model has no price there, or is no endpoint's."""
    judge: float
    policy_prompt_tokens: int
    policy_cached_tokens: int
    policy_completion_tokens: int
    judge_calls: int


class EvaluationResult(msgspec.Struct, frozen=True, kw_only=True):
    """Success is a share of the scored episodes; what never came to a verdict is counted in `unscored`."""

    format: int
    model: Model
    tasks_file: str
    tasks_sha256: str
    recipe: str
    """Recipe, or stored configuration of the run, that it was played with."""
    rubric: str
    settings: dict[str, Setting]
    """What has to be equal in two evaluations for their difference to be the models'."""
    repeat: int
    """Episodes of each task."""
    seed: int
    num_tasks: int
    num_planned: int
    num_episodes: int
    """Scored ones."""
    num_successes: int
    success: float | None
    """pass@1 by episode."""
    low: float | None
    """Wilson's 95 % interval."""
    high: float | None
    reward: float | None
    unscored: dict[str, int]
    """Episodes without a verdict, by cause."""
    pass_at: tuple[Estimate, ...]
    pass_all: tuple[Estimate, ...]
    mean_steps: float | None
    mean_prompt_tokens: float | None
    """Of an episode."""
    mean_completion_tokens: float | None
    mean_seconds: float | None
    costs: Costs
    by_difficulty: dict[str, Group]
    by_site: dict[str, Group]
    tasks: dict[str, Tries]
    """By task: successes and scored tries."""


FORMAT = 2
"""1: before there were tries of each task."""


def write_result(path: Path, result: EvaluationResult) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")


def read_result(path: Path) -> EvaluationResult:
    """Raises `ConfigurationError` when the file is no result of an evaluation."""
    file = path / "result.json" if path.is_dir() else path
    try:
        return msgspec.json.decode(file.read_bytes(), type=EvaluationResult)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read ({error.strerror}): give the result.json of an evaluation") from error
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{file} is no result of millrace eval ({error}): give the result.json of one") from error
