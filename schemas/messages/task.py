"""Defines tasks as the feeder admits them, with the checks that a suite knows."""

import enum
from typing import Annotated

import msgspec

from schemas.ids import RunName, TaskId
from schemas.messages.structs import Message, Struct
from schemas.ranges import MAX_STEPS, Amount, Count, Episode, Group, Version, Whole


class Split(enum.Enum):
    TRAIN = "train"
    EVAL = "eval"


class Fact(Struct, frozen=True):
    """One fact of a rubric, with the context of its group."""

    description: str
    difficulty: Whole = 1
    group: str = ""


class CheckKind(enum.Enum):
    """What a check looks at."""

    ANSWER = "answer"
    URL = "url"
    PAGE = "page"
    """The value of a JavaScript expression in the page as the episode left it."""


class CheckMatch(enum.Enum):
    """How a value is compared with what was expected; case and runs of white space never count."""

    EQUALS = "equals"
    CONTAINS = "contains"
    NUMBER = "number"
    """The first number in the value equals the expected one, to a relative 1e-6."""
    PATTERN = "pattern"
    """A regular expression (Python's) is found in the value, within a second."""
    FUZZY = "fuzzy"
    """The words are nearly equal in any order, and the numbers and negations are the same; not of addresses."""


class Check(Struct, frozen=True):
    """One programmatic condition on how an episode ended."""

    kind: CheckKind
    expected: tuple[str, ...]
    """Any of them will do."""
    match: CheckMatch = CheckMatch.EQUALS
    expression: str = ""
    """Of a page check."""


class Task(Message, frozen=True, tag="task/1"):
    """One admitted episode, as the feeder wrote it: the first record of the episode's chain."""

    run: RunName
    episode: Episode
    group: Group
    task: TaskId
    split: Split
    index: Count
    """Position in the feeder's schedule of this split, from 0; the feeder resumes behind the highest."""
    policy_version: Version
    """Of a held-out episode, its round's. Else the version that admission counted from: the oldest that policies served; where
    none did, the newest announced."""
    instruction: str
    website: str
    """Where the episode starts: a URL, or `suite:page?query` for a page that the browser worker serves itself."""
    max_steps: Annotated[int, msgspec.Meta(ge=1, le=MAX_STEPS)]
    timeout_s: Amount = 18_000.0
    """Seconds from the first page on; WebGym's task_timeout_minutes."""
    domain: str = ""
    subdomain: str = ""
    difficulty: Whole = 1
    facts: tuple[Fact, ...] = ()
    reference_answer: str | None = None
    checks: tuple[Check, ...] = ()
    """Programmatic conditions, all of which a success meets; empty: the environment or a judge scores."""
    max_unparsed: Count = 0
    """Answers in a row that cannot be parsed and end the episode; 0: none do."""
    greedy: bool = False
    """Decode with temperature 0: a baseline that is not trained on."""
    demonstrate: bool = False
    """To be answered by the scripted oracle of the page, not by a policy: warm-start demonstrations."""
    results_seq: Count = 0
    """Adaptive sampling: sequence on JUDGED up to which results counted when the task's round was drawn. Equal in all tasks of
    a round."""
    distribution: str = ""
    """As the task file has it: `id` is that of training's tasks, `ood` out of it; empty: not said."""
    published_split: str = ""
    """As the task file has it: the split's name where the task was published; empty: not said."""
    evaluation: str = ""
    """As the task file has it, as JSON: what the evaluators of a benchmark go by, for the judge that runs them."""
