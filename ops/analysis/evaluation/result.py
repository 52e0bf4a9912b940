"""Holds an evaluation's result as `result.json` does: the metrics, and everything that they depend on."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ops.analysis.evaluation.estimators import Estimate, Tries
from ops.analysis.evaluation.identity import Model, ProtocolStamp
from ops.statistics.shares import Share
from schemas.errors import ConfigurationError

Setting = str | int | float | bool | None
Settings = Mapping[str, Setting]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the episodes."""

    num_successes: int
    num_scored: int
    num_episodes: int
    """Blocked and invalid ones too."""

    @property
    def judged(self) -> Share:
        return Share(self.num_successes, self.num_scored)

    @property
    def over_all(self) -> Share:
        """With what is blocked or invalid as a failure."""
        return Share(self.num_successes, self.num_episodes)


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A share of tries."""

    count: int
    number: int
    value: float | None
    low: float | None
    """Wilson's 95 % interval."""
    high: float | None


class TaskDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of one task beside its tries."""

    instruction: str
    site: str
    difficulty: str
    distribution: str = ""
    published_split: str = ""
    seen: str = ""
    """What the training tasks have of it (`ops.analysis.report.seen`); empty: nobody said which they are."""
    apart: dict[str, int] = {}
    """Tries that are blocked or invalid, by cause."""


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
    """Success is a share of the judged episodes, and beside it one of all that were planned; what is apart is counted."""

    format: int
    model: Model
    protocol: ProtocolStamp | None = None
    tasks_file: str
    tasks_sha256: str
    recipe: str
    """Recipe, or stored configuration of the run, that it was played with."""
    rubric: str
    settings: dict[str, Setting]
    """What has to be equal in two evaluations for their difference to be the models'."""
    repeat: int
    """Episodes of each task with each seed."""
    seed: int
    """Of the intervals; of sampling, where there is one."""
    seeds: tuple[int, ...] = ()
    """Of sampling."""
    num_tasks: int
    num_planned: int
    """Episodes: tasks x repeat x seeds."""
    num_episodes: int = 0
    """Scored ones."""
    num_successes: int = 0
    success: float | None = None
    """pass@1 by episode, of the scored ones."""
    low: float | None = None
    """Wilson's 95 % interval."""
    high: float | None = None
    over_all: Figure | None = None
    """Success of all that were planned: what is blocked or invalid is a failure. None: format 2 did not say."""
    reward: float | None
    blocked: dict[str, int] = {}
    """Episodes that sites blocked, by cause: in no share of the judged ones."""
    invalid: dict[str, int] = {}
    """Episodes that came to no verdict, by cause: the same."""
    pass_at: tuple[Estimate, ...] = ()
    pass_all: tuple[Estimate, ...] = ()
    pass_at_over_all: tuple[Estimate, ...] = ()
    """With what is blocked or invalid as a failure."""
    pass_all_over_all: tuple[Estimate, ...] = ()
    """The same."""
    mean_steps: float | None
    mean_prompt_tokens: float | None
    """Of an episode."""
    mean_completion_tokens: float | None
    mean_seconds: float | None
    costs: Costs
    by_difficulty: dict[str, Group] = {}
    by_site: dict[str, Group] = {}
    by_distribution: dict[str, Group] = {}
    by_published_split: dict[str, Group] = {}
    by_seen: dict[str, Group] = {}
    """By what the training tasks have; empty: nobody said which they are."""
    trained_on: tuple[str, ...] = ()
    """Names of their files."""
    by_seed: dict[str, Group] = {}
    tasks: dict[str, Tries]
    """By task: successes and scored tries."""
    task_details: dict[str, TaskDetail] = {}

    @property
    def judged(self) -> Share:
        return Share(self.num_successes, self.num_episodes)

    @property
    def planned(self) -> Share:
        return Share(self.num_successes, self.num_planned)


FORMAT = 3
"""1: before there were tries of each task; 2: before blocked and invalid ones were told apart."""


def figure(share: Share) -> Figure:
    low, high = share.interval or (None, None)
    return Figure(count=share.count, number=share.number, value=share.value, low=low, high=high)


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
