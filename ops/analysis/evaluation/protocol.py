"""What an evaluation's figures depend on besides the model, as one value: a protocol, which is a file.

Invariant: two files that mean the same have one hash, whatever their order, comments and defaults that they spell out. What
stands in `configuration` counts as it is written: what it would be otherwise says the recipe, which a protocol does not know.
"""

import dataclasses
import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from ops.analysis.evaluation.causes import CHOSEN, Cause, Chosen
from schemas.env_config import DifficultySteps
from schemas.requirement import require

FORMAT = 1
"""Of protocols. A default never changes its meaning without another number."""
_WORDS = ("about", "differs")
_PLACE = "bus_config."
_MOST_REPEATS, _MOST_SEEDS = 1_000, 1_000
_LARGEST_SEED = 2**32 - 1
_MOST_STEPS = 10_000
_MOST_TOKENS = 10_000_000
"""More than any vocabulary or prompt has."""
Difficulty = Literal["easy", "medium", "hard"]


def _require_within(key: str, value: int, least: int, most: int) -> None:
    """Raises `ConfigurationError`."""
    require(least <= value <= most, f"{key} is {value}: write a whole number from {least} to {most:,}")


@dataclass(frozen=True, kw_only=True)
class TaskChoice:
    file: str
    """Task file, relative to `data_path`; `--tasks` says where else it lies."""
    sha256: str = ""
    """Of the file, which is then held to it; empty: any."""
    splits: tuple[str, ...] = ()
    """Only tasks with this `split` of their publisher's; empty: all."""
    difficulties: tuple[Difficulty, ...] = ()
    """Only tasks of these classes (1 to 3, 4 to 6, 7 and more); empty: all."""
    domains: tuple[str, ...] = ()
    """Only tasks of these domains; empty: all."""
    sites: tuple[str, ...] = ()
    """Only tasks of these sites, as `example.org`; empty: all."""
    distributions: tuple[str, ...] = ()
    """Only tasks with this `distribution`, as `ood`; empty: all."""
    without_sites: tuple[str, ...] = ()
    """No tasks of these sites."""
    without_tasks: tuple[str, ...] = ()
    """None of the tasks with these ids."""
    first: int | None = None
    """So many of what is left, in the file's order; null: all."""

    def __post_init__(self) -> None:
        require(self.file != "", "tasks.file is empty: write the name of a task file")
        require(self.first is None or self.first > 0, f"tasks.first is {self.first}: write 1 or more, or null for all")
        is_digest = len(self.sha256) == hashlib.sha256().digest_size * 2 and set(self.sha256) <= set("0123456789abcdef")
        require(self.sha256 == "" or is_digest, f"tasks.sha256 is {self.sha256!r}: write 64 digits of 0-9 and a-f")


@dataclass(frozen=True, kw_only=True)
class Sampling:
    temperature: float = 1.0
    """Of sampling; 0: always the likeliest token."""
    top_p: float = 1.0
    """Only the likeliest tokens that together have this probability; 1: all."""
    top_k: int = -1
    """Only so many of the likeliest tokens; -1: all."""
    min_p: float = 0.0
    """Only tokens with this share of the likeliest one's probability; 0: all."""
    max_tokens: int = 4096
    """Of one answer at most."""

    def __post_init__(self) -> None:
        require(self.temperature >= 0, f"sampling.temperature is {self.temperature:g}: write 0 or more")
        require(0 < self.top_p <= 1, f"sampling.top_p is {self.top_p:g}: write a number above 0 and at most 1")
        require(0 <= self.min_p <= 1, f"sampling.min_p is {self.min_p:g}: write a number from 0 to 1")
        _require_within("sampling.top_k", self.top_k, -1, _MOST_TOKENS)
        _require_within("sampling.max_tokens", self.max_tokens, 1, _MOST_TOKENS)


@dataclass(frozen=True, kw_only=True)
class Viewport:
    width: int = 1280
    """Of a page and its screenshots, in pixels."""
    height: int = 768
    """The same."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What the model is shown of an episode."""

    screenshots: int = 5
    """In one prompt: the present one, and those of the latest rounds."""
    tokens: int | None = None
    """Prompt and answer together have at most so many, oldest rounds go first; null: as the configuration has it."""
    targets: Literal["coordinates", "set_of_marks"] = "coordinates"
    """How actions name what they are aimed at."""
    actions: str = "standard"
    """The vocabulary of actions."""
    history: Literal["line", "none", "action", "response", "thinking"] = "line"
    """What is kept of older rounds, as `context_config.history` has it."""
    calls: int = 1
    """Tool calls of one answer that are carried out."""
    accessibility_tree: bool = False
    """Whether the page's accessibility tree is shown as text."""

    def __post_init__(self) -> None:
        require(self.screenshots > 0, f"context.screenshots is {self.screenshots}: write 1 or more, the present one counts")


@dataclass(frozen=True, kw_only=True)
class Judging:
    name: str
    """Of a judge, with its version."""
    model: str = ""
    """That it asks; empty: it asks none."""
    votes: int = 1
    """Times that each question is asked; the majority decides."""
    temperature: float | None = 0.0
    """Of the judge's model; null: the endpoint's own, for models that take no other."""
    screenshots: int = 48
    """That one question shows at most."""


@dataclass(frozen=True, kw_only=True)
class Apart:
    """Episodes that are neither successes nor failures, by what became of them; what is in neither list is a failure.

    Where nobody came to a verdict (cancelled, a judge's error, not judged, never played to an end) it is always invalid.
    """

    blocked: tuple[Chosen, ...] = ("blocked",)
    """Counted as blocked."""
    invalid: tuple[Chosen, ...] = ("timed_out", "failed", "excluded")
    """Counted as invalid."""

    def __post_init__(self) -> None:
        both = sorted(set(self.blocked) & set(self.invalid))
        require(not both, f"apart has {', '.join(both)} as blocked and as invalid: write it into one of the two")

    def of(self, cause: Cause) -> Literal["blocked", "invalid"] | None:
        """What such an episode counts as; None: as a failure."""
        if cause in self.blocked:
            return "blocked"
        return "invalid" if cause in self.invalid or cause not in CHOSEN else None


@dataclass(frozen=True, kw_only=True)
class Protocol:
    name: str
    """Of the protocol, as results show it."""
    about: str = ""
    """What it is and where it was published, in a sentence."""
    differs: tuple[str, ...] = ()
    """What is known to be otherwise where it was published: results show it."""
    tasks: TaskChoice
    repeats: int = 1
    """Tries at each task with each seed: pass@k is known for k up to this."""
    seeds: tuple[int, ...] = (0,)
    """Of sampling: all tasks are tried with each."""
    steps: int | DifficultySteps = DifficultySteps(easy=30, medium=50, hard=70)
    """Of an episode at most: one number, or `{easy: 30, medium: 50, hard: 70}`."""
    minutes: float = 300.0
    """After which an episode is ended."""
    unparsed: int = 0
    """Answers in a row that cannot be parsed and end an episode as a failure; 0: none do."""
    retries: int = 2
    """Times that an episode which the machinery failed is begun again."""
    sampling: Sampling = Sampling()
    viewport: Viewport = Viewport()
    context: Shown = Shown()
    prompt: str = "vanilla"
    """The prompt that the model is asked with."""
    judge: Judging
    apart: Apart = Apart()
    configuration: dict[str, Any] = field(default_factory=dict)
    """Further keys in full, as `browser_config.denied_hosts: [example.org]`; none that a key above is for."""

    def __post_init__(self) -> None:
        require(self.name != "", "name is empty: write what results are to call the protocol")
        _require_within("repeats", self.repeats, 1, _MOST_REPEATS)
        require(self.seeds != (), "seeds is empty: write one or more whole numbers, as in [0, 1, 2]")
        require(len(self.seeds) <= _MOST_SEEDS, f"seeds has {len(self.seeds)} numbers: write {_MOST_SEEDS:,} at most")
        for seed in (min(self.seeds), max(self.seeds)):
            require(0 <= seed <= _LARGEST_SEED, f"seeds has {seed}: write whole numbers from 0 to {_LARGEST_SEED}")
        require(len(set(self.seeds)) == len(self.seeds), "seeds has a number twice: write each once")
        for name, steps in self._each_steps:
            _require_within(name, steps, 1, _MOST_STEPS)
        require(self.minutes > 0, f"minutes is {self.minutes:g}: write a number above 0")
        for name, number in (("unparsed", self.unparsed), ("retries", self.retries)):
            _require_within(name, number, 0, _MOST_STEPS)

    @property
    def sha256(self) -> str:
        """Of everything that decides figures: neither of words about it, nor of the servers that it is played on."""
        said = {name: value for name, value in _said(self).items() if name not in _WORDS}
        said |= {"format": FORMAT, "steps": dataclasses.asdict(self.step_caps), "configuration": self._further}
        return hashlib.sha256(msgspec.json.encode(said, order="sorted")).hexdigest()

    @property
    def _further(self) -> dict[str, Any]:
        return {key: value for key, value in self.configuration.items() if not key.startswith(_PLACE)}

    @property
    def _each_steps(self) -> tuple[tuple[str, int], ...]:
        if isinstance(self.steps, int):
            return (("steps", self.steps),)
        return tuple((f"steps.{name}", cap) for name, cap in vars(self.steps).items())

    @property
    def step_caps(self) -> DifficultySteps:
        if isinstance(self.steps, DifficultySteps):
            return self.steps
        return DifficultySteps(easy=self.steps, medium=self.steps, hard=self.steps)


def _said(component: Any) -> dict[str, object]:
    """What differs from the defaults: so a key that is added later changes no hash of before."""
    said: dict[str, object] = {}
    for each in dataclasses.fields(component):
        value = getattr(component, each.name)
        if dataclasses.is_dataclass(value):
            said |= {each.name: inner} if (inner := _said(value)) else {}
        elif _ordered(value) != _ordered(each.default):
            said[each.name] = _ordered(value)
    return said


def _ordered(value: object) -> object:
    """No list of a protocol means anything by its order."""
    return sorted(value) if isinstance(value, tuple) else value
